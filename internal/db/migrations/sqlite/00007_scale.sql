-- Indexes, so that lists, metrics and the clean-up read no more rows than they
-- need, however many tasks have finished.

-- +goose Up
CREATE INDEX tasks_status ON tasks (account_id, status, created_at DESC, id DESC);
CREATE INDEX tasks_retrying ON tasks (account_id) WHERE status = 'failed' AND phase <> 'final';
CREATE INDEX tasks_delayed_lane ON tasks (lane) WHERE phase = 'delayed';
CREATE INDEX tasks_ended ON tasks (finished_at) WHERE phase = 'final';
CREATE INDEX callbacks_ended ON callbacks (phase, updated_at) WHERE phase IN ('delivered', 'given_up');
CREATE INDEX doomed_blobs_due ON doomed_blobs (due_at);
CREATE INDEX idempotency_age ON idempotency (created_at);
DROP INDEX tasks_finished;

-- +goose Down
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE status = 'done';
DROP INDEX idempotency_age;
DROP INDEX doomed_blobs_due;
DROP INDEX callbacks_ended;
DROP INDEX tasks_ended;
DROP INDEX tasks_delayed_lane;
DROP INDEX tasks_retrying;
DROP INDEX tasks_status;
