-- Tasks that wait for a time are in a phase of their own, and each account's
-- turn and number of waiting tasks are kept beside the tasks, so that a claim
-- reads neither those that are delayed nor the queues of other accounts.

-- +goose Up
ALTER TABLE tasks DROP CONSTRAINT tasks_phase_check;
ALTER TABLE tasks ADD CONSTRAINT tasks_phase_check CHECK (phase IN ('queued', 'delayed', 'running', 'final'));
UPDATE tasks SET phase = 'delayed' WHERE phase = 'queued' AND run_at > 0;
CREATE INDEX tasks_delayed ON tasks (run_at) WHERE phase = 'delayed';

-- The accounts that have had tasks in a lane: how many wait, and the number of
-- the last turn. The waiting account with the lowest number is next.
CREATE TABLE lane_accounts (
    lane text NOT NULL,
    account_id text NOT NULL,
    served bigint NOT NULL DEFAULT 0,
    waiting bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, account_id)
) WITH (fillfactor = 50);
INSERT INTO lane_accounts (lane, account_id, served, waiting)
SELECT t.lane, t.account_id, COALESCE(u.served, 0), t.waiting
FROM (SELECT lane, account_id, SUM(CASE WHEN phase = 'queued' THEN 1 ELSE 0 END) AS waiting FROM tasks WHERE phase <> 'final' GROUP BY lane, account_id) t
LEFT JOIN turns u ON u.lane = t.lane AND u.account_id = t.account_id;
CREATE INDEX lane_accounts_turn ON lane_accounts (lane, served, account_id) WHERE waiting > 0;
DROP TABLE turns;

-- A paused lane gives no tasks to workers.
CREATE TABLE lanes (
    lane text PRIMARY KEY,
    paused boolean NOT NULL DEFAULT FALSE
);
INSERT INTO lanes (lane) VALUES ('tasks'), ('batch');

-- A draining worker claims no more tasks.
ALTER TABLE workers ADD COLUMN draining boolean NOT NULL DEFAULT FALSE;
CREATE SEQUENCE turns;
SELECT setval('turns', COALESCE((SELECT MAX(served) FROM lane_accounts), 0) + 1);

-- +goose Down
ALTER TABLE workers DROP COLUMN draining;
DROP SEQUENCE turns;
DROP TABLE lanes;
CREATE TABLE turns (
    lane text NOT NULL,
    account_id text NOT NULL,
    served bigint NOT NULL,
    PRIMARY KEY (lane, account_id)
);
INSERT INTO turns (lane, account_id, served) SELECT lane, account_id, served FROM lane_accounts;
DROP TABLE lane_accounts;
DROP INDEX tasks_delayed;
UPDATE tasks SET phase = 'queued' WHERE phase = 'delayed';
