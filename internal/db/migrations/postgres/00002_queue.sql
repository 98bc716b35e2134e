-- The tasks table is the queue. The first version had River's tables beside
-- it, made by River's own migrations.

-- +goose Up
DROP TABLE IF EXISTS river_client_queue;
DROP TABLE IF EXISTS river_client;
DROP TABLE IF EXISTS river_job;
DROP TABLE IF EXISTS river_leader;
DROP TABLE IF EXISTS river_queue;
DROP TABLE IF EXISTS river_migration;
DROP FUNCTION IF EXISTS river_job_state_in_bitmask;
DROP TYPE IF EXISTS river_job_state;
ALTER TABLE tasks DROP COLUMN job_id;
ALTER TABLE callbacks DROP COLUMN job_id;

-- Work that one process at a time does now and then. It is due from due_at on,
-- unless a process holds it until lease_until.
CREATE TABLE chores (
    name text PRIMARY KEY,
    due_at bigint NOT NULL,
    holder text,
    lease_until bigint NOT NULL DEFAULT 0
);

-- +goose Down
DROP TABLE chores;
ALTER TABLE callbacks ADD COLUMN job_id bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN job_id bigint NOT NULL DEFAULT 0;
