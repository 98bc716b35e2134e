-- What a task is asked for beside the specification's options (JSON), and the
-- sentences that are told to those who follow a running task: they go when it ends.

-- +goose Up
ALTER TABLE tasks ADD COLUMN extras text;
CREATE TABLE told_segments (
    task_id text NOT NULL,
    attempt bigint NOT NULL,
    first bigint NOT NULL, -- number of the first of them
    segments text NOT NULL, -- JSON
    PRIMARY KEY (task_id, attempt, first)
);

-- +goose Down
DROP TABLE told_segments;
ALTER TABLE tasks DROP COLUMN extras;
