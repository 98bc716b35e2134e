-- The price of live sessions.

-- +goose Up
ALTER TABLE prices ADD COLUMN live bigint; -- null: that of recordings
