-- What a task leaves behind goes with it: the answer that its idempotency key
-- keeps, and where its callback is sent, which the callback alone knows once the
-- task is final. Tasks that were final before keep theirs until they are deleted.

-- +goose Up
ALTER TABLE tasks ADD COLUMN idempotency_key text; -- null in tasks of an earlier version, too

-- +goose Down
UPDATE tasks SET callback_url = (SELECT url FROM callbacks c WHERE c.task_id = tasks.id), callback_secret = (SELECT secret FROM callbacks c WHERE c.task_id = tasks.id)
    WHERE phase = 'final' AND callback_url IS NULL;
ALTER TABLE tasks DROP COLUMN idempotency_key;
