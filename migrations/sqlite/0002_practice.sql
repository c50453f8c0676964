-- Practice: answers to single questions of the bank, by members and guests. Appended only.
CREATE TABLE practice_answers (
    id        INTEGER NOT NULL PRIMARY KEY,
    user_id   TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    question  INTEGER NOT NULL,
    -- Number of the follow-up it answers, from 1; NULL for the question itself.
    follow_up INTEGER,
    at_ms     INTEGER NOT NULL,
    text      TEXT    NOT NULL,
    -- The model answer was revealed within a day before: it counts as weak.
    seen      INTEGER NOT NULL CHECK (seen IN (0, 1)),
    -- Content hash of the rubric that the grade was given under.
    version   TEXT    NOT NULL,
    total     INTEGER NOT NULL,
    max       INTEGER NOT NULL,
    -- Grade as JSON, made by the types of ringlab-content.
    grade     TEXT    NOT NULL
) STRICT;
CREATE INDEX practice_answers_by_user ON practice_answers (user_id, question, id);

-- When the model answer was last shown without an answer before it. The next answer uses it up.
CREATE TABLE practice_reveals (
    user_id  TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    question INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (user_id, question)
) STRICT, WITHOUT ROWID;
