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
);

-- Tasks of an account whose money no longer covers its holds are not claimed. A
-- claim stops the account's lane; more money, or a hold that ends, lets it go on.
ALTER TABLE lane_accounts ADD COLUMN stopped boolean NOT NULL DEFAULT FALSE;
CREATE INDEX lane_accounts_next ON lane_accounts (lane, served, account_id) WHERE waiting > 0 AND NOT stopped;
DROP INDEX lane_accounts_turn;

-- +goose StatementBegin
CREATE TRIGGER account_sums_begin AFTER INSERT ON accounts
BEGIN
    INSERT INTO account_sums (account_id) VALUES (NEW.id);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_hold AFTER INSERT ON holds
BEGIN
    UPDATE account_sums SET held_tasks = held_tasks + CASE WHEN NEW.batch THEN 0 ELSE NEW.amount END,
        held_batch = held_batch + CASE WHEN NEW.batch THEN NEW.amount ELSE 0 END,
        active_tasks = active_tasks + CASE WHEN NEW.batch THEN 0 ELSE 1 END,
        waiting_batch = waiting_batch + CASE WHEN NEW.batch THEN 1 ELSE 0 END WHERE account_id = NEW.account_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_raise AFTER UPDATE OF amount ON holds
BEGIN
    UPDATE account_sums SET held_tasks = held_tasks + CASE WHEN NEW.batch THEN 0 ELSE NEW.amount - OLD.amount END,
        held_batch = held_batch + CASE WHEN NEW.batch THEN NEW.amount - OLD.amount ELSE 0 END WHERE account_id = NEW.account_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_release AFTER DELETE ON holds
BEGIN
    UPDATE account_sums SET held_tasks = held_tasks - CASE WHEN OLD.batch THEN 0 ELSE OLD.amount END,
        held_batch = held_batch - CASE WHEN OLD.batch THEN OLD.amount ELSE 0 END,
        active_tasks = active_tasks - CASE WHEN OLD.batch THEN 0 ELSE 1 END,
        waiting_batch = waiting_batch - CASE WHEN OLD.batch THEN 1 ELSE 0 END WHERE account_id = OLD.account_id;
    UPDATE lane_accounts SET stopped = FALSE WHERE lane IN ('tasks', 'batch') AND account_id = OLD.account_id AND stopped;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_entry AFTER INSERT ON ledger
BEGIN
    UPDATE account_sums SET entries = entries + 1 WHERE account_id = NEW.account_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_resume AFTER INSERT ON ledger WHEN NEW.amount > 0
BEGIN
    UPDATE lane_accounts SET stopped = FALSE WHERE lane IN ('tasks', 'batch') AND account_id = NEW.account_id AND stopped;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER packs_resume AFTER INSERT ON packs
BEGIN
    UPDATE lane_accounts SET stopped = FALSE WHERE lane IN ('tasks', 'batch') AND account_id = NEW.account_id AND stopped;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_insert AFTER INSERT ON tasks WHEN NEW.phase = 'final'
BEGIN
    UPDATE account_sums SET done = done + (NEW.status = 'done'), failed = failed + (NEW.status = 'failed'),
        abandoned = abandoned + (NEW.status = 'abandoned') WHERE account_id = NEW.account_id AND NEW.phase = 'final';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_update AFTER UPDATE OF phase, status ON tasks
    WHEN (OLD.phase = 'final' OR NEW.phase = 'final') AND (OLD.phase <> NEW.phase OR OLD.status <> NEW.status)
BEGIN
    UPDATE account_sums SET done = done - (OLD.status = 'done'), failed = failed - (OLD.status = 'failed'),
        abandoned = abandoned - (OLD.status = 'abandoned') WHERE account_id = OLD.account_id AND OLD.phase = 'final';
    UPDATE account_sums SET done = done + (NEW.status = 'done'), failed = failed + (NEW.status = 'failed'),
        abandoned = abandoned + (NEW.status = 'abandoned') WHERE account_id = NEW.account_id AND NEW.phase = 'final';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER account_sums_delete AFTER DELETE ON tasks WHEN OLD.phase = 'final'
BEGIN
    UPDATE account_sums SET done = done - (OLD.status = 'done'), failed = failed - (OLD.status = 'failed'),
        abandoned = abandoned - (OLD.status = 'abandoned') WHERE account_id = OLD.account_id AND OLD.phase = 'final';
END;
-- +goose StatementEnd

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
DROP TRIGGER account_sums_delete;
DROP TRIGGER account_sums_update;
DROP TRIGGER account_sums_insert;
DROP TRIGGER packs_resume;
DROP TRIGGER ledger_resume;
DROP TRIGGER account_sums_entry;
DROP TRIGGER account_sums_release;
DROP TRIGGER account_sums_raise;
DROP TRIGGER account_sums_hold;
DROP TRIGGER account_sums_begin;
CREATE INDEX lane_accounts_turn ON lane_accounts (lane, served, account_id) WHERE waiting > 0;
DROP INDEX lane_accounts_next;
ALTER TABLE lane_accounts DROP COLUMN stopped;
DROP TABLE account_sums;
