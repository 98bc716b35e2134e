-- How long an account's tasks are kept after their end, in place of the service's --keep-tasks.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE accounts ADD COLUMN IF NOT EXISTS keep_tasks bigint; -- null: as the service does
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_ended_of ON tasks (account_id, finished_at) WHERE phase = 'final';
