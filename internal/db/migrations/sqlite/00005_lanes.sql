-- Tasks that wait for a time are in a phase of their own, and each account's
-- turn and number of waiting tasks are kept beside the tasks, so that a claim
-- reads neither those that are delayed nor the queues of other accounts.

-- +goose Up
CREATE TABLE tasks_rebuilt (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    status text NOT NULL CHECK (status IN ('processing', 'done', 'failed', 'abandoned')),
    phase text NOT NULL CHECK (phase IN ('queued', 'delayed', 'running', 'final')),
    lane text NOT NULL CHECK (lane IN ('tasks', 'batch')),
    run_at bigint NOT NULL,
    queued_at bigint NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,       -- fencing number: rises with every claim
    failures bigint NOT NULL DEFAULT 0,      -- counted attempts that failed
    crashes bigint NOT NULL DEFAULT 0,       -- of these, deaths of native code
    interruptions bigint NOT NULL DEFAULT 0, -- hand-backs that are not the task's fault
    worker_id text,
    claimed_at bigint,
    model_set text,
    audio_filename text NOT NULL,
    audio_source_type text NOT NULL CHECK (audio_source_type IN ('url', 'base64')),
    audio_url text,
    audio_blob text,
    audio_size bigint,
    audio_md5 text,
    audio_seconds real,
    allow_training boolean NOT NULL,
    options text NOT NULL,
    callback_url text,
    callback_secret text,
    batch_mode boolean NOT NULL,
    price_id bigint NOT NULL,
    error_message text,
    result_blob text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    finished_at bigint
);
INSERT INTO tasks_rebuilt (id, account_id, status, phase, lane, run_at, queued_at, attempt, failures, crashes, interruptions, worker_id, claimed_at, model_set, audio_filename, audio_source_type, audio_url, audio_blob, audio_size, audio_md5, audio_seconds, allow_training, options, callback_url, callback_secret, batch_mode, price_id, error_message, result_blob, created_at, updated_at, finished_at)
SELECT id, account_id, status, CASE WHEN phase = 'queued' AND run_at > 0 THEN 'delayed' ELSE phase END, lane, run_at, queued_at, attempt, failures, crashes, interruptions, worker_id, claimed_at, model_set, audio_filename, audio_source_type, audio_url, audio_blob, audio_size, audio_md5, audio_seconds, allow_training, options, callback_url, callback_secret, batch_mode, price_id, error_message, result_blob, created_at, updated_at, finished_at FROM tasks;
DROP TABLE tasks;
ALTER TABLE tasks_rebuilt RENAME TO tasks;
CREATE INDEX tasks_list ON tasks (account_id, created_at DESC, id DESC);
CREATE INDEX tasks_waiting ON tasks (lane, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_in_turn ON tasks (lane, account_id, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_running ON tasks (worker_id) WHERE phase = 'running';
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE status = 'done';
CREATE INDEX tasks_audio ON tasks (audio_blob) WHERE audio_blob IS NOT NULL;
CREATE INDEX tasks_delayed ON tasks (run_at) WHERE phase = 'delayed';

-- The accounts that have had tasks in a lane: how many wait, and the number of
-- the last turn. The waiting account with the lowest number is next.
CREATE TABLE lane_accounts (
    lane text NOT NULL,
    account_id text NOT NULL,
    served bigint NOT NULL DEFAULT 0,
    waiting bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, account_id)
);
INSERT INTO lane_accounts (lane, account_id, served, waiting)
SELECT t.lane, t.account_id, COALESCE(u.served, 0), t.waiting
FROM (SELECT lane, account_id, SUM(CASE WHEN phase = 'queued' THEN 1 ELSE 0 END) AS waiting FROM tasks WHERE phase <> 'final' GROUP BY lane, account_id) t
LEFT JOIN turns u ON u.lane = t.lane AND u.account_id = t.account_id;
CREATE INDEX lane_accounts_turn ON lane_accounts (lane, served, account_id) WHERE waiting > 0;
CREATE INDEX lane_accounts_last ON lane_accounts (lane, served);
DROP TABLE turns;

-- A paused lane gives no tasks to workers.
CREATE TABLE lanes (
    lane text PRIMARY KEY,
    paused boolean NOT NULL DEFAULT FALSE
);
INSERT INTO lanes (lane) VALUES ('tasks'), ('batch');

-- A draining worker claims no more tasks.
ALTER TABLE workers ADD COLUMN draining boolean NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE workers DROP COLUMN draining;
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
