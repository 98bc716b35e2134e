-- How long an account's tasks are kept after their end, in place of the service's --keep-tasks.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE accounts ADD COLUMN IF NOT EXISTS keep_tasks bigint; -- null: as the service does
DROP INDEX CONCURRENTLY IF EXISTS tasks_ended_of; -- of an attempt that was cut off
CREATE INDEX CONCURRENTLY tasks_ended_of ON tasks (account_id, finished_at) WHERE phase = 'final';
