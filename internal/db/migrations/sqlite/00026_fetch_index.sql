-- Indexes, so that a claim of a download reads few rows, however many of an
-- account's wait.

-- +goose Up
CREATE INDEX tasks_fetch_age ON tasks (account_id, batch_mode, queued_at, id) WHERE lane = 'fetch' AND phase = 'queued';
CREATE INDEX tasks_fetch_host ON tasks (account_id, batch_mode, COALESCE(audio_host, ''), queued_at, id) WHERE lane = 'fetch' AND phase = 'queued';

-- +goose Down
DROP INDEX tasks_fetch_host;
DROP INDEX tasks_fetch_age;
