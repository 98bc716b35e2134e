-- Tasks whose audio has yet to be downloaded wait in a lane of their own, so
-- that a slow source holds no worker. A column's CHECK can't be changed, so the
-- column is made anew.

-- +goose Up
DROP INDEX tasks_waiting;
DROP INDEX tasks_in_turn;
DROP INDEX tasks_delayed_lane;
ALTER TABLE tasks RENAME COLUMN lane TO lane_before;
ALTER TABLE tasks ADD COLUMN lane text NOT NULL DEFAULT 'tasks' CHECK (lane IN ('fetch', 'tasks', 'batch'));
ALTER TABLE tasks ADD COLUMN audio_host text; -- of audio_url; null in tasks of an earlier version
UPDATE tasks SET lane = CASE WHEN phase IN ('queued', 'delayed') AND audio_url IS NOT NULL AND audio_blob IS NULL THEN 'fetch' ELSE lane_before END;
ALTER TABLE tasks DROP COLUMN lane_before;
CREATE INDEX tasks_waiting ON tasks (lane, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_in_turn ON tasks (lane, account_id, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_delayed_lane ON tasks (lane) WHERE phase = 'delayed';
UPDATE lane_accounts SET waiting = (SELECT COUNT(*) FROM tasks t WHERE t.lane = lane_accounts.lane AND t.account_id = lane_accounts.account_id AND t.phase = 'queued');
INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE lane = 'fetch' AND phase = 'queued' GROUP BY lane, account_id;
INSERT INTO lanes (lane) VALUES ('fetch');

-- +goose Down
DROP INDEX tasks_waiting;
DROP INDEX tasks_in_turn;
DROP INDEX tasks_delayed_lane;
DELETE FROM lanes WHERE lane = 'fetch';
DELETE FROM lane_accounts WHERE lane = 'fetch';
ALTER TABLE tasks RENAME COLUMN lane TO lane_before;
ALTER TABLE tasks ADD COLUMN lane text NOT NULL DEFAULT 'tasks' CHECK (lane IN ('tasks', 'batch'));
UPDATE tasks SET lane = CASE WHEN batch_mode THEN 'batch' ELSE 'tasks' END;
ALTER TABLE tasks DROP COLUMN lane_before;
ALTER TABLE tasks DROP COLUMN audio_host;
CREATE INDEX tasks_waiting ON tasks (lane, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_in_turn ON tasks (lane, account_id, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_delayed_lane ON tasks (lane) WHERE phase = 'delayed';
INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE phase = 'queued' GROUP BY lane, account_id
    ON CONFLICT (lane, account_id) DO UPDATE SET waiting = excluded.waiting;
