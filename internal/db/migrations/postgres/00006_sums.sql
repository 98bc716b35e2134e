-- Running sums beside what they are sums of, kept by triggers so that every
-- program keeps them, also one of the release before. billing.Store.Check
-- compares them.

-- +goose Up
CREATE TABLE account_sums (
    account_id text PRIMARY KEY REFERENCES accounts (id),
    held_tasks bigint NOT NULL DEFAULT 0,    -- open holds of tasks that are not batch tasks
    held_batch bigint NOT NULL DEFAULT 0,
    active_tasks bigint NOT NULL DEFAULT 0,  -- their number
    waiting_batch bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0,       -- in the ledger
    done bigint NOT NULL DEFAULT 0,          -- final tasks by status
    failed bigint NOT NULL DEFAULT 0,
    abandoned bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Tasks of an account whose money no longer covers its holds are not claimed. A
-- claim stops the account's lane; more money, or a hold that ends, lets it go on.
ALTER TABLE lane_accounts ADD COLUMN stopped boolean NOT NULL DEFAULT FALSE;
CREATE INDEX lane_accounts_next ON lane_accounts (lane, served, account_id) WHERE waiting > 0 AND NOT stopped;
DROP INDEX lane_accounts_turn;

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

INSERT INTO account_sums (account_id, held_tasks, held_batch, active_tasks, waiting_batch, entries, done, failed, abandoned)
SELECT a.id, COALESCE(h.held_tasks, 0), COALESCE(h.held_batch, 0), COALESCE(h.active_tasks, 0), COALESCE(h.waiting_batch, 0), COALESCE(l.entries, 0),
    COALESCE(t.done, 0), COALESCE(t.failed, 0), COALESCE(t.abandoned, 0)
FROM accounts a
LEFT JOIN (SELECT account_id, SUM(CASE WHEN batch THEN 0 ELSE amount END) AS held_tasks, SUM(CASE WHEN batch THEN amount ELSE 0 END) AS held_batch,
    SUM(CASE WHEN batch THEN 0 ELSE 1 END) AS active_tasks, SUM(CASE WHEN batch THEN 1 ELSE 0 END) AS waiting_batch FROM holds GROUP BY account_id) h ON h.account_id = a.id
LEFT JOIN (SELECT account_id, COUNT(*) AS entries FROM ledger GROUP BY account_id) l ON l.account_id = a.id
LEFT JOIN (SELECT account_id, SUM(CASE WHEN status = 'done' THEN 1 ELSE 0 END) AS done, SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed,
    SUM(CASE WHEN status = 'abandoned' THEN 1 ELSE 0 END) AS abandoned FROM tasks WHERE phase = 'final' GROUP BY account_id) t ON t.account_id = a.id;

-- +goose Down
DROP TRIGGER account_sums_delete ON tasks;
DROP TRIGGER account_sums_update ON tasks;
DROP TRIGGER account_sums_insert ON tasks;
DROP TRIGGER packs_resume ON packs;
DROP TRIGGER account_sums_entry ON ledger;
DROP TRIGGER account_sums_hold ON holds;
DROP TRIGGER account_sums_begin ON accounts;
DROP FUNCTION sum_task();
DROP FUNCTION sum_final(text, text, int);
DROP FUNCTION pack_added();
DROP FUNCTION sum_entry();
DROP FUNCTION sum_hold();
DROP FUNCTION resume_lanes(text);
DROP FUNCTION sum_account();
CREATE INDEX lane_accounts_turn ON lane_accounts (lane, served, account_id) WHERE waiting > 0;
DROP INDEX lane_accounts_next;
ALTER TABLE lane_accounts DROP COLUMN stopped;
DROP TABLE account_sums;
