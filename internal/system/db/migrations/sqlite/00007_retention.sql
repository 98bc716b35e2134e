-- How long an account's tasks are kept after their end, in place of the service's --keep-tasks.

-- +goose Up
ALTER TABLE accounts ADD COLUMN keep_tasks bigint; -- null: as the service does
CREATE INDEX tasks_ended_of ON tasks (account_id, finished_at) WHERE phase = 'final';
