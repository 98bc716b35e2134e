-- Each charged task's key, model, kind of work and length, for reports of usage. The rows stay with the ledger when the task is deleted.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS key_id text; -- the API key that made the task; null for a user
CREATE TABLE IF NOT EXISTS charged_work (
    task_id text PRIMARY KEY,
    key_id text NOT NULL, -- '' for a user
    model text NOT NULL,  -- that the task named, or ''
    kind text NOT NULL,   -- for example asr+diarize+batch
    seconds bigint NOT NULL -- in ten-thousandths
);
DROP INDEX CONCURRENTLY IF EXISTS ledger_account_time; -- of an attempt that was cut off
CREATE INDEX CONCURRENTLY ledger_account_time ON ledger (account_id, created_at);
