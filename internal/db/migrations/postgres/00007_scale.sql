-- Indexes, so that lists, metrics and the clean-up read no more rows than they
-- need, however many tasks have finished.

-- They are built beside the service's work, which cannot be done in a
-- transaction. A build that was broken off leaves an index that does not count,
-- so each begins with its removal. Nobody waits for a build that waits.

-- +goose NO TRANSACTION

-- +goose Up
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS tasks_status;
CREATE INDEX CONCURRENTLY tasks_status ON tasks (account_id, status, created_at DESC, id DESC);
DROP INDEX CONCURRENTLY IF EXISTS tasks_retrying;
CREATE INDEX CONCURRENTLY tasks_retrying ON tasks (account_id) WHERE status = 'failed' AND phase <> 'final';
DROP INDEX CONCURRENTLY IF EXISTS tasks_delayed_lane;
CREATE INDEX CONCURRENTLY tasks_delayed_lane ON tasks (lane) WHERE phase = 'delayed';
DROP INDEX CONCURRENTLY IF EXISTS tasks_ended;
CREATE INDEX CONCURRENTLY tasks_ended ON tasks (finished_at) WHERE phase = 'final';
DROP INDEX CONCURRENTLY IF EXISTS callbacks_ended;
CREATE INDEX CONCURRENTLY callbacks_ended ON callbacks (phase, updated_at) WHERE phase IN ('delivered', 'given_up');
DROP INDEX CONCURRENTLY IF EXISTS doomed_blobs_due;
CREATE INDEX CONCURRENTLY doomed_blobs_due ON doomed_blobs (due_at);
DROP INDEX CONCURRENTLY IF EXISTS idempotency_age;
CREATE INDEX CONCURRENTLY idempotency_age ON idempotency (created_at);
DROP INDEX CONCURRENTLY IF EXISTS tasks_finished;
RESET lock_timeout;

-- +goose Down
DROP INDEX IF EXISTS tasks_finished;
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE status = 'done';
DROP INDEX IF EXISTS idempotency_age;
DROP INDEX IF EXISTS doomed_blobs_due;
DROP INDEX IF EXISTS callbacks_ended;
DROP INDEX IF EXISTS tasks_ended;
DROP INDEX IF EXISTS tasks_delayed_lane;
DROP INDEX IF EXISTS tasks_retrying;
DROP INDEX IF EXISTS tasks_status;
