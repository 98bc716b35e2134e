-- The changes that people made to results by hand, in order; a row never changes. The version of a task's first change is
-- 1.

-- +goose Up
CREATE TABLE corrections (
    task_id text NOT NULL,
    version bigint NOT NULL,
    author text NOT NULL, -- a user's name, or an API key's first characters; '' if unknown
    made_at bigint NOT NULL,
    change text NOT NULL, -- JSON
    PRIMARY KEY (task_id, version)
);
-- Annotations are corrections now; their table is no longer used.
INSERT INTO corrections (task_id, version, author, made_at, change)
    SELECT task_id, version, '', updated_at, '{"op":"annotate",' || substr(content, 2) FROM annotations;
