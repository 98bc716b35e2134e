package db_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
)

// riverTables are what River's migrations left beside the first version's
// tables, as far as names and dependencies go.
var riverTables = map[db.Dialect]string{
	db.SQLite: `CREATE TABLE river_queue (name text PRIMARY KEY);
		CREATE TABLE river_leader (elected_at timestamp NOT NULL);
		CREATE TABLE river_migration (line text NOT NULL, version integer NOT NULL);
		CREATE TABLE river_client (id text PRIMARY KEY);
		CREATE TABLE river_client_queue (river_client_id text NOT NULL REFERENCES river_client (id) ON DELETE CASCADE);
		CREATE TABLE river_job (id integer PRIMARY KEY, state text NOT NULL, unique_key blob);
		CREATE UNIQUE INDEX river_job_unique_idx ON river_job (unique_key) WHERE unique_key IS NOT NULL;
		INSERT INTO river_job (id, state) VALUES (1, 'available')`,
	db.Postgres: `CREATE TYPE river_job_state AS ENUM ('available', 'completed');
		CREATE FUNCTION river_job_state_in_bitmask(bitmask bit(8), state river_job_state) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT get_bit(bitmask, 7) = 1';
		CREATE UNLOGGED TABLE river_client (id text PRIMARY KEY);
		CREATE UNLOGGED TABLE river_client_queue (river_client_id text NOT NULL REFERENCES river_client (id) ON DELETE CASCADE);
		CREATE TABLE river_job (id bigserial PRIMARY KEY, state river_job_state NOT NULL, unique_key bytea, unique_states bit(8));
		CREATE UNIQUE INDEX river_job_unique_idx ON river_job (unique_key) WHERE unique_key IS NOT NULL AND river_job_state_in_bitmask(unique_states, state);
		CREATE UNLOGGED TABLE river_leader (elected_at timestamptz NOT NULL);
		CREATE TABLE river_migration (line text NOT NULL, version bigint NOT NULL);
		CREATE TABLE river_queue (name text PRIMARY KEY);
		INSERT INTO river_job (state) VALUES ('available')`,
}

// firstRows is one task in each phase and a callback, as the first version
// wrote them.
const firstRows = `INSERT INTO accounts (id, name, created_at) VALUES ('a', 'customer', 1), ('b', 'other', 1);
	INSERT INTO tasks (id, account_id, status, phase, lane, job_id, run_at, queued_at, attempt, failures, worker_id, audio_filename, audio_source_type, allow_training,
		options, batch_mode, price_id, created_at, updated_at, finished_at) VALUES
		('queued', 'a', 'processing', 'queued', 'tasks', 1, 0, 5, 0, 0, NULL, 'a.wav', 'url', FALSE, '{}', FALSE, 1, 5, 5, NULL),
		('again', 'a', 'processing', 'queued', 'tasks', 1, 7, 6, 1, 0, NULL, 'a.wav', 'url', FALSE, '{}', FALSE, 1, 6, 6, NULL),
		('batch', 'b', 'processing', 'queued', 'batch', 1, 0, 5, 0, 0, NULL, 'a.wav', 'url', FALSE, '{}', TRUE, 1, 5, 5, NULL),
		('retry', 'b', 'failed', 'queued', 'tasks', 1, 4000000000000000, 5, 1, 1, NULL, 'a.wav', 'url', FALSE, '{}', FALSE, 1, 5, 9, NULL),
		('running', 'b', 'processing', 'running', 'tasks', 1, 0, 5, 1, 0, 'w', 'a.wav', 'url', FALSE, '{}', FALSE, 1, 5, 9, NULL),
		('done', 'a', 'done', 'final', 'tasks', 1, 0, 5, 1, 0, NULL, 'a.wav', 'url', FALSE, '{}', FALSE, 1, 5, 9, 9);
	INSERT INTO holds (task_id, account_id, amount, batch, created_at) VALUES ('queued', 'a', 10, FALSE, 1), ('again', 'a', 20, FALSE, 1), ('batch', 'b', 40, TRUE, 1),
		('retry', 'b', 80, FALSE, 1), ('running', 'b', 160, FALSE, 1);
	INSERT INTO turns (lane, account_id, served) VALUES ('tasks', 'b', 3);
	INSERT INTO callbacks (id, task_id, account_id, url, host, body, phase, job_id, next_at, created_at, updated_at)
		VALUES ('msg_1', 'done', 'a', 'https://receiver.example/', 'receiver.example', '{}', 'queued', 1, 0, 9, 9)`

// TestUpgradeFromFirstVersion migrates a store of the first version, with
// River's tables and with tasks in every phase.
func TestUpgradeFromFirstVersion(t *testing.T) {
	upgrade := func(t *testing.T, d *db.DB) {
		require.NoError(t, d.MigrateTo(t.Context(), 1))
		for statement := range strings.SplitSeq(riverTables[d.Dialect()]+";"+firstRows, ";") {
			exec(t, d, statement)
		}
		exec(t, d, "UPDATE tasks SET audio_url = 'https://source.example/a.wav' WHERE id IN ('batch', 'retry', 'running', 'done')")
		require.NoError(t, d.Migrate(t.Context()))

		left := "SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'river%'"
		if d.Dialect() == db.Postgres {
			left = `SELECT (SELECT COUNT(*) FROM pg_class WHERE relname LIKE 'river%') + (SELECT COUNT(*) FROM pg_type WHERE typname LIKE 'river%') +
				(SELECT COUNT(*) FROM pg_proc WHERE proname LIKE 'river%')`
		}
		count := func(query string) (n int) {
			t.Helper()
			require.NoError(t, d.Read().QueryRow(query).Scan(&n), query)
			return n
		}
		assert.Zero(t, count(left), "tables, types and functions of River")
		for id, want := range map[string]string{
			"queued": "queued processing 0", "again": "delayed processing 7", "batch": "queued processing 0", "retry": "delayed failed 4000000000000000",
			"running": "running processing 0", "done": "final done 0",
		} {
			var phase, status, run string
			require.NoError(t, d.Read().QueryRow("SELECT phase, status, CAST(run_at AS text) FROM tasks WHERE id = $1", id).Scan(&phase, &status, &run))
			assert.Equal(t, want, phase+" "+status+" "+run, id)
		}
		assert.Equal(t, 6, count("SELECT COUNT(*) FROM tasks"))
		assert.Equal(t, 1, count("SELECT COUNT(*) FROM callbacks WHERE phase = 'queued'"))
		assert.Equal(t, 1, count("SELECT waiting FROM lane_accounts WHERE lane = 'tasks' AND account_id = 'a'"))
		assert.Equal(t, 0, count("SELECT waiting FROM lane_accounts WHERE lane = 'batch' AND account_id = 'b'"))
		assert.Equal(t, 1, count("SELECT waiting FROM lane_accounts WHERE lane = 'fetch' AND account_id = 'b'"))
		for id, want := range map[string]string{"queued": "tasks", "batch": "fetch", "retry": "fetch", "running": "tasks", "done": "tasks"} {
			assert.Equal(t, 1, count("SELECT COUNT(*) FROM tasks WHERE id = '"+id+"' AND lane = '"+want+"'"), id)
		}
		assert.Equal(t, 3, count("SELECT served + waiting FROM lane_accounts WHERE lane = 'tasks' AND account_id = 'b'"))
		assert.Equal(t, 310, count("SELECT SUM(amount) FROM holds"))
		for figure, want := range map[string]int{"held_tasks": 270, "held_batch": 40, "active_tasks": 4, "waiting_batch": 1, "entries": 0, "done": 1, "failed": 0} {
			assert.Equal(t, want, count("SELECT SUM("+figure+") FROM account_sums"), figure)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		upgrade(t, dbtest.Open(t, filepath.Join(dbtest.Dir(t), "old.db"), db.Options{}))
	})
	t.Run("postgres", func(t *testing.T) {
		if dbtest.Programs() == "" {
			t.Skip("PostgreSQL's server programs are not installed")
		}
		server, err := dbtest.StartServer()
		require.NoError(t, err)
		defer server.Close()
		require.NoError(t, server.CreateDatabase(t.Context(), "old", "template1"))
		d := dbtest.Open(t, server.Source("old"), db.Options{})
		defer d.Close()
		upgrade(t, d)
	})
}
