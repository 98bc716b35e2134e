-- How far a worker is with the task that it has: the part of the run that it
-- last told of, and how much of the whole is done, from 0 to 1.

-- +goose Up
ALTER TABLE workers ADD COLUMN task_id text;
ALTER TABLE workers ADD COLUMN stage text NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN fraction real NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE workers DROP COLUMN fraction;
ALTER TABLE workers DROP COLUMN stage;
ALTER TABLE workers DROP COLUMN task_id;
