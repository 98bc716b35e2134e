-- Names of a deleted account leave the audit log: an entry may lose its names and details, and nothing else may change.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.seq = OLD.seq AND NEW.at = OLD.at AND NEW.action = OLD.action AND NEW.detail = '' AND NEW.subject LIKE 'deleted %'
            AND NEW.operator IN (OLD.operator, 'a user') THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only';
END;
$$;
-- +goose StatementEnd
