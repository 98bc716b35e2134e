-- When each chore was done last, for operators.

-- +goose Up
ALTER TABLE chores ADD COLUMN done_at bigint;

-- +goose Down
ALTER TABLE chores DROP COLUMN done_at;
