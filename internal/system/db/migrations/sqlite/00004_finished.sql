-- The order in which an account's tasks ended. The number is assigned under the lock of the account's sums, which lasts until the commit, so that a
-- reader who sees a number sees all lower ones.

-- +goose Up
ALTER TABLE account_sums ADD COLUMN finished bigint NOT NULL DEFAULT 0; -- last number
ALTER TABLE tasks ADD COLUMN finished_seq bigint; -- null for tasks that ended before there were numbers
CREATE INDEX tasks_finished ON tasks (account_id, finished_seq) WHERE phase = 'final';
-- +goose StatementBegin
CREATE TRIGGER tasks_number AFTER UPDATE OF phase ON tasks WHEN OLD.phase <> 'final' AND NEW.phase = 'final'
BEGIN
    UPDATE account_sums SET finished = finished + 1 WHERE account_id = NEW.account_id;
    UPDATE tasks SET finished_seq = (SELECT finished FROM account_sums WHERE account_id = NEW.account_id) WHERE id = NEW.id;
END;
-- +goose StatementEnd
