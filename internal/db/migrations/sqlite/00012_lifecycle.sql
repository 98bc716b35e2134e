-- The life cycle of accounts and keys, and what operators did.

-- +goose Up
ALTER TABLE accounts ADD COLUMN suspended_at bigint; -- null: not suspended
ALTER TABLE api_keys ADD COLUMN read_only boolean NOT NULL DEFAULT FALSE;
ALTER TABLE api_keys ADD COLUMN expires_at bigint;
ALTER TABLE api_keys ADD COLUMN used_at bigint; -- to within ten minutes

-- Append-only: the triggers below refuse every change and deletion.
CREATE TABLE audit (
    seq integer PRIMARY KEY AUTOINCREMENT,
    at bigint NOT NULL,
    operator text NOT NULL, -- name and machine
    action text NOT NULL,
    subject text NOT NULL,  -- account, key, user, task, lane or worker
    detail text NOT NULL
);
-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TABLE audit;
ALTER TABLE api_keys DROP COLUMN used_at;
ALTER TABLE api_keys DROP COLUMN expires_at;
ALTER TABLE api_keys DROP COLUMN read_only;
ALTER TABLE accounts DROP COLUMN suspended_at;
