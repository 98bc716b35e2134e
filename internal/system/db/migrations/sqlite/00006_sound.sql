-- The length of a waiting task's sound, for the metric of the queue.

-- +goose Up
ALTER TABLE tasks ADD COLUMN sound_seconds double precision; -- null if unknown
CREATE INDEX tasks_waiting_sound ON tasks (lane, sound_seconds) WHERE phase = 'queued';
