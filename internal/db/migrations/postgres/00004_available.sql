-- What a worker's models can transcribe (tiers, languages), as JSON. Null for
-- other processes and for workers of an earlier version.

-- +goose Up
ALTER TABLE workers ADD COLUMN available text;

-- +goose Down
ALTER TABLE workers DROP COLUMN available;
