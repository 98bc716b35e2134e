-- +goose Up
-- Which database this is, one row, written at the first start: the file store
-- that belongs to it has the same id.
CREATE TABLE identity (
    one bigint PRIMARY KEY CHECK (one = 1),
    id text NOT NULL,
    store_claimed_at bigint, -- when a file store was made to belong to it
    created_at bigint NOT NULL
);

-- Files of ours that nothing points at. They are deleted when they have been
-- marked for long enough.
CREATE TABLE orphans (
    key text PRIMARY KEY,
    marked_at bigint NOT NULL,
    seen_at bigint NOT NULL
);

-- +goose Down
DROP TABLE orphans;
DROP TABLE identity;
