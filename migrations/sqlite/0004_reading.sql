-- What a reader leaves behind in the course. `chapter` is the slug, which stays when chapters are numbered anew.
CREATE TABLE sections_read (
    user_id TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    chapter TEXT    NOT NULL,
    section TEXT    NOT NULL,
    at_ms   INTEGER NOT NULL,
    PRIMARY KEY (user_id, chapter, section)
) STRICT, WITHOUT ROWID;

-- Where the reader was last in each chapter; the last word counts.
CREATE TABLE reading_places (
    user_id  TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    chapter  TEXT    NOT NULL,
    section  TEXT    NOT NULL,
    -- How far into the section, in thousandths of its height.
    permille INTEGER NOT NULL CHECK (permille BETWEEN 0 AND 1000),
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (user_id, chapter)
) STRICT, WITHOUT ROWID;

CREATE TABLE quiz_states (
    user_id         TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    chapter         TEXT    NOT NULL,
    quiz            TEXT    NOT NULL,
    -- Content hash of the chapter that the response was given to.
    chapter_version TEXT    NOT NULL,
    -- JSON, made by the types of ringlab-content.
    response        TEXT    NOT NULL,
    -- Verdict of the last response that was checked.
    correct         INTEGER CHECK (correct IN (0, 1)),
    -- Raised by every save, from 1.
    version         INTEGER NOT NULL,
    at_ms           INTEGER NOT NULL,
    PRIMARY KEY (user_id, chapter, quiz)
) STRICT, WITHOUT ROWID;

-- A deleted note is gone; whoever undoes the deletion sends it again under its id.
CREATE TABLE notes (
    id           TEXT    NOT NULL PRIMARY KEY,
    user_id      TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    chapter      TEXT    NOT NULL,
    section      TEXT    NOT NULL,
    lang         TEXT    NOT NULL CHECK (lang IN ('zh', 'en')),
    quote        TEXT,
    quote_before TEXT,
    quote_after  TEXT,
    colour       TEXT    NOT NULL CHECK (colour IN ('yellow', 'green', 'blue', 'pink')),
    text         TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    created_ms   INTEGER NOT NULL,
    changed_ms   INTEGER NOT NULL,
    CHECK ((quote IS NULL) = (quote_before IS NULL) AND (quote IS NULL) = (quote_after IS NULL)),
    CHECK (quote IS NOT NULL OR text != '')
) STRICT;
CREATE INDEX notes_by_user ON notes (user_id, chapter, id);
