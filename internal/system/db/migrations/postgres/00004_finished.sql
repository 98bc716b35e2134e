-- The order in which an account's tasks ended. The number is assigned under the lock of the account's sums, which lasts until the commit, so that a
-- reader who sees a number sees all lower ones.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE account_sums ADD COLUMN IF NOT EXISTS finished bigint NOT NULL DEFAULT 0; -- last number
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS finished_seq bigint; -- null for tasks that ended before there were numbers
DROP INDEX CONCURRENTLY IF EXISTS tasks_finished; -- of an attempt that was cut off
CREATE INDEX CONCURRENTLY tasks_finished ON tasks (account_id, finished_seq) WHERE phase = 'final';
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION number_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account_sums SET finished = finished + 1 WHERE account_id = NEW.account_id RETURNING finished INTO NEW.finished_seq;
    RETURN NEW;
END;
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER tasks_number BEFORE UPDATE OF phase ON tasks FOR EACH ROW
    WHEN (OLD.phase <> 'final' AND NEW.phase = 'final') EXECUTE FUNCTION number_task();
