-- +goose Up
CREATE TABLE accounts (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    balance bigint NOT NULL DEFAULT 0,
    tier bigint NOT NULL DEFAULT 1 CHECK (tier BETWEEN 1 AND 5),
    concurrency bigint CHECK (concurrency >= 0),
    tps_thousandths bigint CHECK (tps_thousandths > 0),
    burst bigint CHECK (burst > 0),
    created_at bigint NOT NULL
);

CREATE TABLE api_keys (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    hash text NOT NULL UNIQUE,
    hint text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint
);
CREATE INDEX api_keys_account ON api_keys (account_id);

CREATE TABLE users (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    username text NOT NULL UNIQUE,
    password text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE secrets (
    name text PRIMARY KEY,
    value text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE rate_buckets (
    account_id text PRIMARY KEY,
    tokens_thousandths bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE prices (
    id bigserial PRIMARY KEY,
    standard bigint NOT NULL CHECK (standard >= 0),
    zh_lite bigint NOT NULL CHECK (zh_lite >= 0),
    diarize bigint NOT NULL CHECK (diarize >= 0),
    audio_events bigint NOT NULL CHECK (audio_events >= 0),
    batch_discount bigint NOT NULL CHECK (batch_discount BETWEEN 0 AND 10000),
    valid_from bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX prices_valid ON prices (valid_from, id);
INSERT INTO prices (standard, zh_lite, diarize, audio_events, batch_discount, valid_from, created_at)
VALUES (6000, 2000, 1000, 1000, 5000, 0, 0);

-- Money set aside for a task until it is settled or released; a row is an open hold.
CREATE TABLE holds (
    task_id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    amount bigint NOT NULL CHECK (amount >= 0),
    batch boolean NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX holds_account ON holds (account_id);

CREATE TABLE packs (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    value bigint NOT NULL CHECK (value >= 0),
    remaining bigint NOT NULL CHECK (remaining >= 0 AND remaining <= value),
    concurrency bigint NOT NULL DEFAULT 0 CHECK (concurrency >= 0),
    expires_at bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX packs_account ON packs (account_id, expires_at);

CREATE TABLE pack_uses (
    pack_id text NOT NULL REFERENCES packs (id),
    task_id text NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    created_at bigint NOT NULL,
    PRIMARY KEY (pack_id, task_id)
);

CREATE TABLE settlements (
    task_id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    mode text NOT NULL,
    minutes bigint NOT NULL,
    detail text NOT NULL,
    total bigint NOT NULL CHECK (total >= 0),
    from_packs bigint NOT NULL CHECK (from_packs >= 0 AND from_packs <= total),
    balance_after bigint NOT NULL,
    settled_at bigint NOT NULL
);
CREATE INDEX settlements_account ON settlements (account_id);

-- Append-only: the triggers below refuse every change and deletion.
CREATE TABLE ledger (
    seq bigserial PRIMARY KEY,
    id text NOT NULL UNIQUE,
    account_id text NOT NULL REFERENCES accounts (id),
    task_id text UNIQUE,
    type text NOT NULL CHECK (type IN ('deduction', 'recharge', 'refund')),
    amount bigint NOT NULL,
    balance_before bigint NOT NULL,
    balance_after bigint NOT NULL,
    description text NOT NULL,
    created_at bigint NOT NULL,
    CHECK (balance_after = balance_before + amount),
    CHECK ((type = 'recharge' AND amount > 0) OR (type = 'refund' AND amount < 0) OR (type = 'deduction' AND amount <= 0)),
    CHECK ((type = 'deduction') = (task_id IS NOT NULL))
);
CREATE INDEX ledger_account ON ledger (account_id, seq);

CREATE TABLE tasks (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    status text NOT NULL CHECK (status IN ('processing', 'done', 'failed', 'abandoned')),
    -- queued: waits to run (again) from run_at on; running: with worker_id; final: nothing more happens.
    phase text NOT NULL CHECK (phase IN ('queued', 'running', 'final')),
    lane text NOT NULL CHECK (lane IN ('tasks', 'batch')),
    job_id bigint NOT NULL,
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
    audio_seconds double precision,
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
CREATE INDEX tasks_list ON tasks (account_id, created_at DESC, id DESC);
CREATE INDEX tasks_waiting ON tasks (lane, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_in_turn ON tasks (lane, account_id, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_running ON tasks (worker_id) WHERE phase = 'running';
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE status = 'done';
CREATE INDEX tasks_audio ON tasks (audio_blob) WHERE audio_blob IS NOT NULL;

-- When each account had its last turn in a lane: the account that waited longest is served next.
CREATE TABLE turns (
    lane text NOT NULL,
    account_id text NOT NULL,
    served bigint NOT NULL,
    PRIMARY KEY (lane, account_id)
);

CREATE TABLE idempotency (
    account_id text NOT NULL,
    key text NOT NULL,
    body_hash text NOT NULL,
    answer text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, key)
);

CREATE TABLE callbacks (
    id text PRIMARY KEY,
    task_id text NOT NULL UNIQUE,
    account_id text NOT NULL,
    url text NOT NULL,
    host text NOT NULL,
    secret text,
    body text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('queued', 'running', 'delivered', 'given_up')),
    job_id bigint NOT NULL,
    next_at bigint NOT NULL,
    claim bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    worker_id text,
    last_error text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX callbacks_queued ON callbacks (next_at) WHERE phase = 'queued';
CREATE INDEX callbacks_running ON callbacks (worker_id) WHERE phase = 'running';

CREATE TABLE workers (
    id text PRIMARY KEY,
    kind text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    pid_start text NOT NULL,
    supervisor text,
    version text NOT NULL,
    model_set text NOT NULL,
    beats bigint NOT NULL DEFAULT 0,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL
);

-- Files that no row points at any more; they are deleted from due_at on.
CREATE TABLE doomed_blobs (
    key text PRIMARY KEY,
    due_at bigint NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only';
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION ledger_refuse();
CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse();

-- +goose Down
DROP TABLE doomed_blobs;
DROP TABLE workers;
DROP TABLE callbacks;
DROP TABLE idempotency;
DROP TABLE turns;
DROP TABLE tasks;
DROP TABLE ledger;
DROP TABLE settlements;
DROP TABLE pack_uses;
DROP TABLE packs;
DROP TABLE holds;
DROP TABLE prices;
DROP TABLE rate_buckets;
DROP TABLE secrets;
DROP TABLE users;
DROP TABLE api_keys;
DROP TABLE accounts;
DROP FUNCTION ledger_refuse();
