-- An account's receiver of events, with its monthly budget. Its messages are rows of callbacks whose task_id begins with "hook:".

-- +goose Up
CREATE TABLE hooks (
    account_id text PRIMARY KEY REFERENCES accounts (id),
    url text NOT NULL,
    events text NOT NULL,              -- names, separated by spaces
    secret text NOT NULL,
    old_secret text,                   -- signs too, until old_until
    old_until bigint,
    budget bigint NOT NULL CHECK (budget >= 0), -- of a month; 0: none
    timezone text NOT NULL,            -- in which months begin
    month text NOT NULL DEFAULT '',    -- of spent and warned, such as 2026-11; '' if not counted yet
    spent bigint NOT NULL DEFAULT 0,   -- price of the month's tasks
    warned bigint NOT NULL DEFAULT 0,  -- highest percentage of the budget that was announced
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
