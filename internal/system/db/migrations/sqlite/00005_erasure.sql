-- Names of a deleted account leave the audit log: an entry may lose its names and details, and nothing else may change.

-- +goose Up
DROP TRIGGER audit_no_update;
-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
    WHEN NOT (NEW.seq = OLD.seq AND NEW.at = OLD.at AND NEW.action = OLD.action AND NEW.detail = '' AND NEW.subject LIKE 'deleted %'
        AND NEW.operator IN (OLD.operator, 'a user'))
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
