-- The prices that a store starts with say when they were installed.

-- +goose Up
UPDATE prices SET created_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS integer) WHERE created_at = 0;

-- +goose Down
UPDATE prices SET created_at = 0 WHERE valid_from = 0;
