-- The length of a waiting task's sound, for the metric of the queue.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS sound_seconds double precision; -- null if unknown
DROP INDEX CONCURRENTLY IF EXISTS tasks_waiting_sound; -- of an attempt that was cut off
CREATE INDEX CONCURRENTLY tasks_waiting_sound ON tasks (lane, sound_seconds) WHERE phase = 'queued';
