package tasks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

const (
	crowd = 2000 // rows of each kind that a call must not read
	few   = 150  // more rows than a call reads without those of the crowd
)

// crowded returns a fixture on PostgreSQL in which thousands of accounts have
// one waiting task each, and one account has thousands of waiting, delayed and
// finished tasks. It has one connection, so that rowsRead counts each call's
// reads.
func crowded(t *testing.T) *taskstest.Fixture {
	t.Helper()
	d := dbtest.Postgres(t, db.Options{MaxConns: 1, Timeout: time.Minute})
	f := taskstest.New(t, d)
	if f.Count("SELECT CAST(current_setting('server_version_num') AS int)") < 150000 {
		t.Skip("PostgreSQL before 15 reports the rows it has read too late")
	}
	f.Exec(fmt.Sprintf("INSERT INTO accounts (id, name, balance, created_at) SELECT 'account-' || i, 'account-' || i, 1000000, 0 FROM generate_series(1, %d) i", crowd))
	mine := "'" + f.Account + "'"
	addCrowd(f, "other", "'account-' || i", "processing", "queued", "0", "NULL")
	addCrowd(f, "waiting", mine, "processing", "queued", "0", "NULL")
	addCrowd(f, "delayed", mine, "failed", "delayed", fmt.Sprint(db.Micros(time.Now().Add(time.Minute))), "NULL")
	addCrowd(f, "done", mine, "done", "final", "0", "i")
	f.Exec("INSERT INTO holds (task_id, account_id, amount, batch, created_at) SELECT id, account_id, 1, FALSE, 0 FROM tasks WHERE phase <> 'final'")
	f.Exec("INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE phase = 'queued' GROUP BY lane, account_id")
	vacuum(t, d)
	return f
}

// addCrowd adds tasks; account, runAt and finishedAt are SQL expressions over
// the task's number i.
func addCrowd(f *taskstest.Fixture, name, account, status, phase, runAt, finishedAt string) {
	f.T.Helper()
	f.Exec(fmt.Sprintf(`INSERT INTO tasks (id, account_id, status, phase, lane, run_at, queued_at, finished_at, audio_filename, audio_source_type, audio_url,
		allow_training, options, batch_mode, price_id, created_at, updated_at) SELECT '%s-' || i, %s, '%s', '%s', 'tasks', %s, i, %s, 'a.wav', 'url',
		'https://source.example/a.wav', FALSE, '{}', FALSE, 1, i, i FROM generate_series(1, %d) i`, name, account, status, phase, runAt, finishedAt, crowd))
}

// vacuum runs the vacuum that autovacuum would run later.
func vacuum(t testing.TB, d *db.DB) {
	t.Helper()
	for _, table := range []string{"accounts", "tasks", "holds", "account_sums", "lane_accounts"} {
		_, err := d.Read().ExecContext(t.Context(), "VACUUM ANALYZE "+table)
		require.NoError(t, err)
	}
}

// rowsRead returns the number of table rows and index entries that were read
// while call ran, including reads that the connection has not reported yet.
func rowsRead(f *taskstest.Fixture, call func() error) int {
	f.T.Helper()
	count := func() int {
		return f.Count(`SELECT CAST((SELECT SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables)
			+ (SELECT SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables) AS bigint)`)
	}
	before := count()
	require.NoError(f.T, call())
	return count() - before
}

// TestClaimsReadNoQueues counts the rows that a claim reads while thousands of
// accounts wait, one of them with a long queue, and thousands of tasks are
// delayed.
func TestClaimsReadNoQueues(t *testing.T) {
	f := crowded(t)
	claim := func() (account string, n int) {
		n = rowsRead(f, func() error {
			c, err := f.Next(t.Context(), "w", "m")
			require.NotNil(t, c)
			account = c.AccountID
			return err
		})
		return account, n
	}
	for range 3 {
		_, n := claim()
		assert.Less(t, n, few)
	}
	f.Exec("UPDATE lane_accounts SET served = -1 WHERE account_id = $1", f.Account)
	account, n := claim()
	assert.Less(t, n, few)
	assert.Equal(t, f.Account, account, "the one with the long queue")
	t.Logf("a claim from a queue of %d tasks, with %d other waiting accounts, reads %d rows", crowd, crowd, n)
}

// TestDownloadClaimsReadNoQueues counts the rows that the claim of a download
// reads while thousands of tasks wait in the account whose turn it is.
func TestDownloadClaimsReadNoQueues(t *testing.T) {
	f := crowded(t)
	f.Exec("UPDATE tasks SET lane = 'fetch', audio_host = 'other.example' WHERE phase = 'queued'")
	f.Exec("UPDATE tasks SET audio_host = 'long.example' WHERE phase = 'queued' AND account_id = $1", f.Account)
	f.Exec("UPDATE lane_accounts SET lane = 'fetch'")
	f.Exec("INSERT INTO lane_accounts (lane, account_id, waiting) VALUES ('tasks', $1, 10)", f.Account)
	vacuum(t, f.Config.DB)
	hosts := []string{"a.example", "long.example", "z.example"}
	before, last := fmt.Sprintf("waiting-%d", crowd-1), fmt.Sprintf("waiting-%d", crowd)
	for _, c := range []struct {
		name    string
		prepare string
		busy    queue.Busy
		first   string // id of the claimed task, "" for a task of another account
	}{
		{"nothing is busy", "", queue.Busy{Ahead: 11}, "waiting-1"},
		{"another host is busy", "", queue.Busy{Ahead: 11, Hosts: []string{"a.example"}}, "waiting-2"},
		{"no room", "", queue.Busy{Ahead: 10}, ""},
		{"the account is busy", "", queue.Busy{Ahead: 11, Accounts: []string{f.Account}}, ""},
		{"its host is busy", "", queue.Busy{Ahead: 11, Hosts: hosts}, ""},
		{
			"all but one are batch tasks", "UPDATE tasks SET batch_mode = (id <> '" + last + "') WHERE phase = 'queued' AND account_id = '" + f.Account + "'",
			queue.Busy{Ahead: 11},
			last,
		},
		{"the last has another host", "UPDATE tasks SET audio_host = 'new.example' WHERE id = '" + before + "'", queue.Busy{Ahead: 11, Hosts: hosts}, before},
	} {
		if c.prepare != "" {
			f.Exec(c.prepare)
		}
		f.Exec("UPDATE lane_accounts SET served = -1 WHERE lane = 'fetch' AND account_id = $1", f.Account)
		vacuum(t, f.Config.DB)
		n := rowsRead(f, func() error {
			claim, err := f.NextFetch(t.Context(), "f", c.busy)
			if assert.NotNil(t, claim, c.name) && c.first == "" {
				assert.NotEqual(t, f.Account, claim.AccountID, c.name)
			} else if claim != nil {
				assert.Equal(t, c.first, claim.ID, c.name)
			}
			return err
		})
		assert.Less(t, n, 3*few, c.name)
		t.Logf("%s: a claim of a download, with %d waiting in the account and %d accounts, reads %d rows", c.name, crowd, crowd, n)
	}
}

// TestRowsReadDoNotGrowWithTasks counts the rows read when a task is created
// and when tasks are listed, in an account with thousands of open holds and
// finished tasks, and for the metrics before and after thousands more have
// finished.
func TestRowsReadDoNotGrowWithTasks(t *testing.T) {
	f := crowded(t)
	request := f.Request(nil)
	created := rowsRead(f, func() error {
		_, _, err := f.Create(t.Context(), request, tasks.Idempotency{})
		return err
	})
	assert.Less(t, created, few)
	for _, filter := range []tasks.Filter{{Page: billing.Page{Number: 1, Size: 20}}, {Status: tasks.StatusDone, Page: billing.Page{Number: 1, Size: 20}}} {
		n := rowsRead(f, func() error {
			list, total, err := f.List(t.Context(), f.Account, filter)
			assert.Len(t, list, filter.Size)
			assert.GreaterOrEqual(t, total, crowd)
			return err
		})
		assert.Less(t, n, few)
		t.Logf("list %+v reads %d rows", filter, n)
	}
	shown := func() int {
		return rowsRead(f, func() error { _, err := f.Stats(t.Context()); return err })
	}
	before := shown()
	addCrowd(f, "more", "'"+f.Account+"'", "done", "final", "0", "i")
	vacuum(t, f.Config.DB)
	after := shown()
	assert.Less(t, after, before+few)
	t.Logf("a creation with %d open holds reads %d rows; the metrics read %d with %d finished tasks and %d with %d", 3*crowd, created, before, crowd, after, 2*crowd)
}
