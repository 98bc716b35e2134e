-- The price of live sessions.

-- +goose Up
ALTER TABLE prices ADD COLUMN IF NOT EXISTS live bigint; -- null: that of recordings
