-- Tasks whose audio has yet to be downloaded wait in a lane of their own, so
-- that a slow source holds no worker.

-- +goose Up
ALTER TABLE tasks DROP CONSTRAINT tasks_lane_check;
ALTER TABLE tasks ADD CONSTRAINT tasks_lane_check CHECK (lane IN ('fetch', 'tasks', 'batch'));
ALTER TABLE tasks ADD COLUMN audio_host text; -- of audio_url; null in tasks of an earlier version
UPDATE tasks SET lane = 'fetch' WHERE phase IN ('queued', 'delayed') AND audio_url IS NOT NULL AND audio_blob IS NULL;
UPDATE lane_accounts SET waiting = (SELECT COUNT(*) FROM tasks t WHERE t.lane = lane_accounts.lane AND t.account_id = lane_accounts.account_id AND t.phase = 'queued');
INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE lane = 'fetch' AND phase = 'queued' GROUP BY lane, account_id;
INSERT INTO lanes (lane) VALUES ('fetch');

-- +goose Down
DELETE FROM lanes WHERE lane = 'fetch';
DELETE FROM lane_accounts WHERE lane = 'fetch';
UPDATE tasks SET lane = CASE WHEN batch_mode THEN 'batch' ELSE 'tasks' END;
ALTER TABLE tasks DROP COLUMN audio_host;
ALTER TABLE tasks DROP CONSTRAINT tasks_lane_check;
ALTER TABLE tasks ADD CONSTRAINT tasks_lane_check CHECK (lane IN ('tasks', 'batch'));
INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE phase = 'queued' GROUP BY lane, account_id
    ON CONFLICT (lane, account_id) DO UPDATE SET waiting = excluded.waiting;
