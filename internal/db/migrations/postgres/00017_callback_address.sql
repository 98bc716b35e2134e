-- A callback whose receiver has its share of deliveries under way waits for that
-- receiver's address, whatever name it goes by.

-- +goose Up
ALTER TABLE callbacks ADD COLUMN address text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE callbacks DROP COLUMN address;
