-- Voices that accounts know by name, with the vectors that describe them: personal
-- data, apart from everything else. And the hash of the speaker model that a task's
-- vectors come from, without which they cannot be compared.
-- The tasks come before the accounts, which the foreign key locks, as in transactions
-- that settle a task.

-- +goose Up
ALTER TABLE tasks ADD COLUMN voice_model text;
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

-- +goose Down
ALTER TABLE tasks DROP COLUMN voice_model;
DROP TABLE voices;
