-- What the reader of a result says of it: names of speakers and corrected
-- texts, as JSON. The version rises with every change.

-- +goose Up
CREATE TABLE annotations (
    task_id text PRIMARY KEY,
    version bigint NOT NULL,
    content text NOT NULL,
    updated_at bigint NOT NULL
);

-- +goose Down
DROP TABLE annotations;
