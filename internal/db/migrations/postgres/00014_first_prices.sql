-- The prices that a store starts with say when they were installed.

-- +goose Up
UPDATE prices SET created_at = CAST(extract(epoch FROM now()) * 1000000 AS bigint) WHERE created_at = 0;

-- +goose Down
UPDATE prices SET created_at = 0 WHERE valid_from = 0;
