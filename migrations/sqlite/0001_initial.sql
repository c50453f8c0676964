-- Ids are UUIDv7 in text form, times are milliseconds since 1970 UTC by the server's clock, JSON is text made by the types of ringlab-labs.

-- A guest is a user without an email address: signing up fills the row in, so that a guest's work stays where it is.
CREATE TABLE users (
    id            TEXT    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL CHECK (kind IN ('guest', 'member')),
    role          TEXT    NOT NULL DEFAULT 'learner' CHECK (role IN ('learner', 'instructor', 'admin')),
    email         TEXT    UNIQUE,
    password_hash TEXT,
    display_name  TEXT,
    created_ms    INTEGER NOT NULL,
    CHECK ((kind = 'guest') = (email IS NULL))
) STRICT;

-- What a browser's cookie proves. The token itself is never stored.
CREATE TABLE sessions (
    token_hash BLOB    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_ms INTEGER NOT NULL,
    seen_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_seen ON sessions (seen_ms);

CREATE TABLE classes (
    id         TEXT    NOT NULL PRIMARY KEY,
    title      TEXT    NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE enrolments (
    class_id   TEXT    NOT NULL REFERENCES classes (id) ON DELETE CASCADE,
    user_id    TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role       TEXT    NOT NULL CHECK (role IN ('learner', 'instructor')),
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (class_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    id               TEXT    NOT NULL PRIMARY KEY,
    owner            TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    lab              TEXT    NOT NULL,
    lab_version      TEXT    NOT NULL,
    -- Which run of this lab by this owner, from 1: with owner and lab version it fixes the seed.
    run_number       INTEGER NOT NULL,
    -- A u64, stored bit for bit.
    seed             INTEGER NOT NULL,
    submission       TEXT    NOT NULL,
    -- The JobSpec a runner is sent.
    spec             TEXT    NOT NULL,
    plan             TEXT,
    backend          TEXT    NOT NULL,
    state            TEXT    NOT NULL DEFAULT 'queued'
                     CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    -- The fencing token: 0 before the first lease, raised by every lease, never reused.
    attempt          INTEGER NOT NULL DEFAULT 0,
    max_attempts     INTEGER NOT NULL,
    created_ms       INTEGER NOT NULL,
    -- When it last entered the queue.
    queued_ms        INTEGER NOT NULL,
    started_ms       INTEGER,
    finished_ms      INTEGER,
    runner           TEXT,
    lease_until_ms   INTEGER,
    -- After a runner's failure the job keeps away from that runner for a moment, so that another may take it.
    avoid_runner     TEXT,
    avoid_until_ms   INTEGER NOT NULL DEFAULT 0,
    -- Failure as JSON: of the last attempt while queued again, of the job when failed.
    failure          TEXT,
    result           TEXT,
    UNIQUE (owner, lab, run_number),
    CHECK ((state = 'running') = (lease_until_ms IS NOT NULL)),
    CHECK (state != 'done' OR result IS NOT NULL),
    CHECK (state != 'failed' OR failure IS NOT NULL)
) STRICT;
CREATE INDEX jobs_queue ON jobs (backend, id) WHERE state = 'queued';
CREATE INDEX jobs_leases ON jobs (lease_until_ms) WHERE state = 'running';
CREATE INDEX jobs_by_state ON jobs (state);

-- Every lease that was ever given, with its end.
CREATE TABLE attempts (
    job          TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt      INTEGER NOT NULL,
    runner       TEXT    NOT NULL,
    runner_name  TEXT    NOT NULL,
    started_ms   INTEGER NOT NULL,
    ended_ms     INTEGER,
    outcome      TEXT    CHECK (outcome IN ('done', 'failed', 'expired', 'cancelled', 'returned')),
    -- Failure as JSON.
    failure      TEXT,
    -- All events up to and including this one are stored.
    last_seq     INTEGER NOT NULL DEFAULT 0,
    event_bytes  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

-- Appended only.
CREATE TABLE events (
    job     TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    event   TEXT    NOT NULL,
    PRIMARY KEY (job, attempt, seq),
    FOREIGN KEY (job, attempt) REFERENCES attempts (job, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Files of an accepted result; the bytes lie in the artifact store under their hash.
CREATE TABLE artifacts (
    job        TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    media_type TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    sha256     TEXT    NOT NULL,
    PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_hash ON artifacts (sha256);

-- A learner answers a run once: the marks show what was expected.
CREATE TABLE answers (
    job         TEXT    NOT NULL PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    lab_version TEXT    NOT NULL,
    created_ms  INTEGER NOT NULL,
    answers     TEXT    NOT NULL
) STRICT;

-- Appended only: marks computed again keep the older ones. The newest of a job counts.
CREATE TABLE marks (
    id          INTEGER NOT NULL PRIMARY KEY,
    job         TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    lab_version TEXT    NOT NULL,
    computed_ms INTEGER NOT NULL,
    marks       TEXT    NOT NULL
) STRICT;
CREATE INDEX marks_by_job ON marks (job, id);

CREATE TABLE runner_tokens (
    id         TEXT    NOT NULL PRIMARY KEY,
    label      TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) STRICT;

-- One row per connection of a runner.
CREATE TABLE runners (
    id              TEXT    NOT NULL PRIMARY KEY,
    token           TEXT    NOT NULL REFERENCES runner_tokens (id),
    name            TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    hardware        TEXT    NOT NULL,
    connected_ms    INTEGER NOT NULL,
    seen_ms         INTEGER NOT NULL,
    disconnected_ms INTEGER
) STRICT;
CREATE INDEX runners_connected ON runners (id) WHERE disconnected_ms IS NULL;

-- Who did what, from what to what, and why.
CREATE TABLE audit_log (
    id      INTEGER NOT NULL PRIMARY KEY,
    at_ms   INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    old     TEXT,
    new     TEXT,
    why     TEXT    NOT NULL
) STRICT;
CREATE TRIGGER audit_log_is_append_only_update BEFORE UPDATE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only'); END;
CREATE TRIGGER audit_log_is_append_only_delete BEFORE DELETE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only'); END;
