-- Timed interviews: who may sit what, what was written when, what it earned, and who looked at it.

CREATE TABLE assessments (
    id             TEXT    NOT NULL PRIMARY KEY,
    title          TEXT    NOT NULL,
    -- QuestionSet as JSON, and the numbers it stood for when the assessment was made.
    question_set   TEXT    NOT NULL,
    questions      TEXT    NOT NULL,
    seconds        INTEGER NOT NULL CHECK (seconds > 0),
    blind          INTEGER NOT NULL CHECK (blind IN (0, 1)),
    two_reviewers  INTEGER NOT NULL CHECK (two_reviewers IN (0, 1)),
    report_at_once INTEGER NOT NULL CHECK (report_at_once IN (0, 1)),
    -- A user's id; the assessment outlives the account.
    created_by     TEXT    NOT NULL,
    created_ms     INTEGER NOT NULL,
    closed_ms      INTEGER
) STRICT;

-- The code itself is shown once and never stored.
CREATE TABLE invitations (
    id         TEXT    NOT NULL PRIMARY KEY,
    assessment TEXT    NOT NULL REFERENCES assessments (id) ON DELETE CASCADE,
    label      TEXT    NOT NULL,
    code_hash  BLOB    NOT NULL UNIQUE CHECK (length(code_hash) = 32),
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) STRICT;
CREATE INDEX invitations_by_assessment ON invitations (assessment, id);

-- One for an invitation at most.
CREATE TABLE sittings (
    id         TEXT    NOT NULL PRIMARY KEY,
    invitation TEXT    NOT NULL UNIQUE REFERENCES invitations (id) ON DELETE CASCADE,
    assessment TEXT    NOT NULL REFERENCES assessments (id) ON DELETE CASCADE,
    candidate  TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    state      TEXT    NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'submitted', 'time_over')),
    started_ms INTEGER NOT NULL,
    ends_ms    INTEGER NOT NULL,
    ended_ms   INTEGER,
    -- Every question has a grade.
    graded_ms  INTEGER,
    events     INTEGER NOT NULL DEFAULT 0,
    CHECK ((state = 'running') = (ended_ms IS NULL)),
    CHECK (graded_ms IS NULL OR ended_ms IS NOT NULL)
) STRICT;
CREATE INDEX sittings_by_candidate ON sittings (candidate);
CREATE INDEX sittings_by_assessment ON sittings (assessment);
CREATE INDEX sittings_running ON sittings (ends_ms) WHERE state = 'running';
CREATE INDEX sittings_ungraded ON sittings (ended_ms) WHERE ended_ms IS NOT NULL AND graded_ms IS NULL;

-- One row for every question of a sitting, from its start.
CREATE TABLE drafts (
    sitting  TEXT    NOT NULL REFERENCES sittings (id) ON DELETE CASCADE,
    question INTEGER NOT NULL,
    version  INTEGER NOT NULL DEFAULT 0,
    tab      TEXT    NOT NULL DEFAULT '',
    text     TEXT    NOT NULL DEFAULT '',
    saved_ms INTEGER,
    -- When an earlier text last went into the history.
    kept_ms  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (sitting, question)
) STRICT;

-- Earlier texts, thinned.
CREATE TABLE draft_versions (
    sitting  TEXT    NOT NULL,
    question INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    saved_ms INTEGER NOT NULL,
    text     TEXT    NOT NULL,
    PRIMARY KEY (sitting, question, version),
    FOREIGN KEY (sitting, question) REFERENCES drafts (sitting, question) ON DELETE CASCADE
) STRICT;

-- Appended only, so many for a sitting.
CREATE TABLE sitting_events (
    id      INTEGER NOT NULL PRIMARY KEY,
    sitting TEXT    NOT NULL REFERENCES sittings (id) ON DELETE CASCADE,
    at_ms   INTEGER NOT NULL,
    event   TEXT    NOT NULL
) STRICT;
CREATE INDEX sitting_events_by_sitting ON sitting_events (sitting, id);

-- Appended only: the newest of a question counts.
CREATE TABLE grades (
    id        INTEGER NOT NULL PRIMARY KEY,
    sitting   TEXT    NOT NULL REFERENCES sittings (id) ON DELETE CASCADE,
    question  INTEGER NOT NULL,
    -- Of the rubric.
    version   TEXT    NOT NULL,
    graded_ms INTEGER NOT NULL,
    grade     TEXT    NOT NULL
) STRICT;
CREATE INDEX grades_by_sitting ON grades (sitting, question, id);

-- Appended only: the newest of a point counts.
CREATE TABLE overrides (
    id        INTEGER NOT NULL PRIMARY KEY,
    sitting   TEXT    NOT NULL REFERENCES sittings (id) ON DELETE CASCADE,
    question  INTEGER NOT NULL,
    point     INTEGER NOT NULL,
    old       INTEGER NOT NULL,
    new       INTEGER NOT NULL,
    why       TEXT    NOT NULL,
    by_user   TEXT    NOT NULL,
    by_name   TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX overrides_by_sitting ON overrides (sitting, id);

-- A confirmation is for the marks as they stood: `revision` is how many overrides there were.
CREATE TABLE confirmations (
    sitting  TEXT    NOT NULL REFERENCES sittings (id) ON DELETE CASCADE,
    by_user  TEXT    NOT NULL,
    by_name  TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    note     TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (sitting, by_user, revision)
) STRICT;
