-- Times are microseconds since 1970, money is in ten-thousandths of the currency unit unless the column says otherwise.

-- +goose Up
CREATE TABLE accounts (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    balance bigint NOT NULL DEFAULT 0,
    tier bigint NOT NULL DEFAULT 1 CHECK (tier BETWEEN 1 AND 5),
    concurrency bigint CHECK (concurrency >= 0),
    tps_thousandths bigint CHECK (tps_thousandths > 0),
    burst bigint CHECK (burst > 0),
    suspended_at bigint, -- null: not suspended
    created_at bigint NOT NULL
);

CREATE TABLE api_keys (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    hash text NOT NULL UNIQUE,
    hint text NOT NULL,
    read_only boolean NOT NULL DEFAULT FALSE,
    expires_at bigint,
    used_at bigint, -- to within ten minutes
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
VALUES (6000, 2000, 1000, 1000, 5000, 0, CAST(extract(epoch FROM now()) * 1000000 AS bigint));

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

-- Running sums, kept by triggers. billing.Store.Check compares them with the rows that they add up.
CREATE TABLE account_sums (
    account_id text PRIMARY KEY REFERENCES accounts (id),
    held_tasks bigint NOT NULL DEFAULT 0,    -- open holds of tasks that are not batch tasks
    held_batch bigint NOT NULL DEFAULT 0,    -- open holds of batch tasks
    active_tasks bigint NOT NULL DEFAULT 0,  -- number of open holds in held_tasks
    waiting_batch bigint NOT NULL DEFAULT 0, -- number of open holds in held_batch
    entries bigint NOT NULL DEFAULT 0,       -- in the ledger
    done bigint NOT NULL DEFAULT 0,          -- final tasks by status
    failed bigint NOT NULL DEFAULT 0,
    abandoned bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The queue.
CREATE TABLE tasks (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    status text NOT NULL CHECK (status IN ('processing', 'done', 'failed', 'abandoned')),
    -- queued: may run now; delayed: not before run_at; running: by worker_id; final: ended for good.
    phase text NOT NULL CHECK (phase IN ('queued', 'delayed', 'running', 'final')),
    -- fetch: the audio must be downloaded first.
    lane text NOT NULL CHECK (lane IN ('fetch', 'tasks', 'batch')),
    run_at bigint NOT NULL,
    queued_at bigint NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,       -- fencing number: rises with every claim
    failures bigint NOT NULL DEFAULT 0,      -- counted attempts that failed
    crashes bigint NOT NULL DEFAULT 0,       -- failures that were deaths of native code
    interruptions bigint NOT NULL DEFAULT 0, -- hand-backs that are not the task's fault
    worker_id text,
    claimed_at bigint,
    model_set text,
    audio_filename text NOT NULL,
    audio_source_type text NOT NULL CHECK (audio_source_type IN ('url', 'base64')),
    audio_url text,
    audio_host text, -- of audio_url
    audio_blob text,
    audio_size bigint,
    audio_md5 text,
    audio_seconds double precision,
    allow_training boolean NOT NULL,
    options text NOT NULL,
    extras text,          -- requests beyond the specification's options, JSON
    voice_model text,     -- hash of the speaker model that made the task's vectors
    callback_url text,    -- null once the task is final
    callback_secret text,
    idempotency_key text,
    batch_mode boolean NOT NULL,
    price_id bigint NOT NULL,
    error_message text,
    warnings text,        -- about the recording, JSON; of a task that is done
    language text,        -- of the speech, of a task that is done
    speakers bigint,      -- number of speakers, of a task that is done
    result_blob text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    finished_at bigint
);
CREATE INDEX tasks_list ON tasks (account_id, created_at DESC, id DESC);
CREATE INDEX tasks_status ON tasks (account_id, status, created_at DESC, id DESC);
CREATE INDEX tasks_retrying ON tasks (account_id) WHERE status = 'failed' AND phase <> 'final';
CREATE INDEX tasks_waiting ON tasks (lane, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_in_turn ON tasks (lane, account_id, queued_at, id) WHERE phase = 'queued';
CREATE INDEX tasks_fetch_age ON tasks (account_id, batch_mode, queued_at, id) WHERE lane = 'fetch' AND phase = 'queued';
CREATE INDEX tasks_fetch_host ON tasks (account_id, batch_mode, COALESCE(audio_host, ''), queued_at, id) WHERE lane = 'fetch' AND phase = 'queued';
CREATE INDEX tasks_delayed ON tasks (run_at) WHERE phase = 'delayed';
CREATE INDEX tasks_delayed_lane ON tasks (lane) WHERE phase = 'delayed';
CREATE INDEX tasks_running ON tasks (worker_id) WHERE phase = 'running';
CREATE INDEX tasks_ended ON tasks (finished_at) WHERE phase = 'final';
CREATE INDEX tasks_audio ON tasks (audio_blob) WHERE audio_blob IS NOT NULL;

-- A paused lane gives no tasks to workers.
CREATE TABLE lanes (
    lane text PRIMARY KEY,
    paused boolean NOT NULL DEFAULT FALSE
);
INSERT INTO lanes (lane) VALUES ('tasks'), ('batch'), ('fetch');

-- The accounts that have had tasks in a lane, so that a claim does not read the queues of other accounts. The waiting
-- account with the lowest number of the last turn (served) is next.
CREATE TABLE lane_accounts (
    lane text NOT NULL,
    account_id text NOT NULL,
    served bigint NOT NULL DEFAULT 0,
    waiting bigint NOT NULL DEFAULT 0,      -- number of queued tasks
    stopped boolean NOT NULL DEFAULT FALSE, -- by a claim: the account's money does not cover its holds
    PRIMARY KEY (lane, account_id)
) WITH (fillfactor = 50);
CREATE INDEX lane_accounts_next ON lane_accounts (lane, served, account_id) WHERE waiting > 0 AND NOT stopped;
CREATE SEQUENCE turns;

-- Sentences of running tasks, for clients that follow them; they are deleted when the
-- task ends.
CREATE TABLE live_segments (
    task_id text NOT NULL,
    attempt bigint NOT NULL,
    first bigint NOT NULL,  -- number of the first segment in segments
    segments text NOT NULL, -- JSON
    PRIMARY KEY (task_id, attempt, first)
);

-- Speakers' names and corrected texts, as the reader of a result entered them. The version rises with every change.
CREATE TABLE annotations (
    task_id text PRIMARY KEY,
    version bigint NOT NULL,
    content text NOT NULL, -- JSON
    updated_at bigint NOT NULL
);

-- Voices that accounts know by name, with the vectors that describe them: personal data.
CREATE TABLE voices (
    id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts (id),
    name text NOT NULL,
    model text NOT NULL,
    consent text NOT NULL,
    dimension bigint NOT NULL,
    vectors bytea NOT NULL, -- float32, little-endian, one vector after another
    added_at bigint NOT NULL,
    UNIQUE (account_id, name, model)
);

CREATE TABLE idempotency (
    account_id text NOT NULL,
    key text NOT NULL,
    body_hash text NOT NULL,
    answer text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE callbacks (
    id text PRIMARY KEY,
    task_id text NOT NULL UNIQUE,
    account_id text NOT NULL,
    url text NOT NULL,
    host text NOT NULL,
    address text NOT NULL DEFAULT '', -- of the receiver, whatever name it goes by, while it has too many deliveries under way
    secret text,
    body text NOT NULL,
    warning text NOT NULL DEFAULT '', -- value of the header Warning
    phase text NOT NULL CHECK (phase IN ('queued', 'running', 'delivered', 'given_up')),
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
CREATE INDEX callbacks_ended ON callbacks (phase, updated_at) WHERE phase IN ('delivered', 'given_up');

CREATE TABLE workers (
    id text PRIMARY KEY,
    kind text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    pid_start text NOT NULL,
    supervisor text,
    version text NOT NULL,
    model_set text NOT NULL,
    available text,                          -- tiers and languages of the worker's models, JSON; null in other processes
    draining boolean NOT NULL DEFAULT FALSE, -- claims no more tasks
    task_id text,
    stage text NOT NULL DEFAULT '',          -- of the task's run, as last reported
    fraction real NOT NULL DEFAULT 0,        -- of the task's run, 0 to 1
    beats bigint NOT NULL DEFAULT 0,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL
);

-- Work that one process at a time does now and then. It is due from due_at on, unless a process holds it until lease_until.
CREATE TABLE chores (
    name text PRIMARY KEY,
    due_at bigint NOT NULL,
    holder text,
    lease_until bigint NOT NULL DEFAULT 0,
    done_at bigint
);

-- One row, written at the first start: the file store that belongs to this database has the same id.
CREATE TABLE identity (
    one bigint PRIMARY KEY CHECK (one = 1),
    id text NOT NULL,
    store_claimed_at bigint, -- when a file store was made to belong to it
    created_at bigint NOT NULL
);

-- Files that no row points at any more; they are deleted from due_at on.
CREATE TABLE doomed_blobs (
    key text PRIMARY KEY,
    due_at bigint NOT NULL
);
CREATE INDEX doomed_blobs_due ON doomed_blobs (due_at);

-- Files of the service that no row points at. They are deleted when they have been marked for long enough.
CREATE TABLE orphans (
    key text PRIMARY KEY,
    marked_at bigint NOT NULL,
    seen_at bigint NOT NULL
);

-- Actions of operators. Append-only: the triggers below refuse every change and deletion.
CREATE TABLE audit (
    seq bigserial PRIMARY KEY,
    at bigint NOT NULL,
    operator text NOT NULL, -- name and machine
    action text NOT NULL,
    subject text NOT NULL,  -- account, key, user, task, lane or worker
    detail text NOT NULL
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

-- +goose StatementBegin
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- The triggers of account_sums. More money, or a hold that ends, resumes stopped lanes of the account.

-- +goose StatementBegin
CREATE FUNCTION sum_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_sums (account_id) VALUES (NEW.id);
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER account_sums_begin AFTER INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION sum_account();

-- +goose StatementBegin
CREATE FUNCTION resume_lanes(account text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lane_accounts SET stopped = FALSE WHERE lane IN ('tasks', 'batch') AND account_id = account AND stopped;
    IF FOUND THEN
        PERFORM pg_notify('otograph_tasks', '');
    END IF;
END;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sum_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE account_sums SET held_tasks = held_tasks + CASE WHEN NEW.batch THEN 0 ELSE NEW.amount END,
            held_batch = held_batch + CASE WHEN NEW.batch THEN NEW.amount ELSE 0 END,
            active_tasks = active_tasks + CASE WHEN NEW.batch THEN 0 ELSE 1 END,
            waiting_batch = waiting_batch + CASE WHEN NEW.batch THEN 1 ELSE 0 END WHERE account_id = NEW.account_id;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE account_sums SET held_tasks = held_tasks + CASE WHEN NEW.batch THEN 0 ELSE NEW.amount - OLD.amount END,
            held_batch = held_batch + CASE WHEN NEW.batch THEN NEW.amount - OLD.amount ELSE 0 END WHERE account_id = NEW.account_id;
    ELSE
        UPDATE account_sums SET held_tasks = held_tasks - CASE WHEN OLD.batch THEN 0 ELSE OLD.amount END,
            held_batch = held_batch - CASE WHEN OLD.batch THEN OLD.amount ELSE 0 END,
            active_tasks = active_tasks - CASE WHEN OLD.batch THEN 0 ELSE 1 END,
            waiting_batch = waiting_batch - CASE WHEN OLD.batch THEN 1 ELSE 0 END WHERE account_id = OLD.account_id;
        PERFORM resume_lanes(OLD.account_id);
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER account_sums_hold AFTER INSERT OR UPDATE OF amount OR DELETE ON holds FOR EACH ROW EXECUTE FUNCTION sum_hold();

-- +goose StatementBegin
CREATE FUNCTION sum_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account_sums SET entries = entries + 1 WHERE account_id = NEW.account_id;
    IF NEW.amount > 0 THEN
        PERFORM resume_lanes(NEW.account_id);
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER account_sums_entry AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION sum_entry();

-- +goose StatementBegin
CREATE FUNCTION pack_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM resume_lanes(NEW.account_id);
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER packs_resume AFTER INSERT ON packs FOR EACH ROW EXECUTE FUNCTION pack_added();

-- +goose StatementBegin
CREATE FUNCTION sum_final(account text, task_status text, change int) RETURNS void LANGUAGE sql AS $$
    UPDATE account_sums SET done = done + CASE task_status WHEN 'done' THEN change ELSE 0 END,
        failed = failed + CASE task_status WHEN 'failed' THEN change ELSE 0 END,
        abandoned = abandoned + CASE task_status WHEN 'abandoned' THEN change ELSE 0 END WHERE account_id = account;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION sum_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.phase = 'final' THEN
        PERFORM sum_final(OLD.account_id, OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.phase = 'final' THEN
        PERFORM sum_final(NEW.account_id, NEW.status, 1);
    END IF;
    RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER account_sums_insert AFTER INSERT ON tasks FOR EACH ROW WHEN (NEW.phase = 'final') EXECUTE FUNCTION sum_task();
CREATE TRIGGER account_sums_update AFTER UPDATE OF phase, status ON tasks FOR EACH ROW
    WHEN ((OLD.phase = 'final' OR NEW.phase = 'final') AND (OLD.phase <> NEW.phase OR OLD.status <> NEW.status)) EXECUTE FUNCTION sum_task();
CREATE TRIGGER account_sums_delete AFTER DELETE ON tasks FOR EACH ROW WHEN (OLD.phase = 'final') EXECUTE FUNCTION sum_task();
