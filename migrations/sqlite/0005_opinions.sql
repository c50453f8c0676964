-- What the optional judge thought of an answer, beside the grade and never instead of it.

-- One for an answer and a version of its rubric: an opinion, or why there is none.
CREATE TABLE opinions (
    sitting  TEXT    NOT NULL REFERENCES sittings (id) ON DELETE CASCADE,
    question INTEGER NOT NULL,
    -- Of the rubric by which the answer was graded.
    version  TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    model    TEXT    NOT NULL,
    opinion  TEXT,
    failure  TEXT,
    PRIMARY KEY (sitting, question, version),
    CHECK ((opinion IS NULL) <> (failure IS NULL))
) STRICT;
