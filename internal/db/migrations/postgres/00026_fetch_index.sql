-- Indexes, so that a claim of a download reads few rows, however many of an
-- account's wait. They are built beside the service's work, as in 00007.

-- +goose NO TRANSACTION

-- +goose Up
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS tasks_fetch_age;
CREATE INDEX CONCURRENTLY tasks_fetch_age ON tasks (account_id, batch_mode, queued_at, id) WHERE lane = 'fetch' AND phase = 'queued';
DROP INDEX CONCURRENTLY IF EXISTS tasks_fetch_host;
CREATE INDEX CONCURRENTLY tasks_fetch_host ON tasks (account_id, batch_mode, COALESCE(audio_host, ''), queued_at, id) WHERE lane = 'fetch' AND phase = 'queued';
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS tasks_fetch_host;
DROP INDEX IF EXISTS tasks_fetch_age;
