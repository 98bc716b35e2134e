package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func exec(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	require.NoError(t, d.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), query, args...)
		return err
	}))
}

func TestWriteCommitsOrRollsBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec(t, d, "INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3)", "a", "one", db.Micros(time.Now()))
		boom := errors.New("boom")
		err := d.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ('b', 'two', 0)")
			require.NoError(t, err)
			return boom
		})
		require.ErrorIs(t, err, boom)
		var n int
		require.NoError(t, d.Read().QueryRow("SELECT count(*) FROM accounts").Scan(&n))
		assert.Equal(t, 1, n)

		err = d.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ('c', 'one', 0)")
			return err
		})
		require.Error(t, err)
		assert.True(t, db.Unique(err))
	})
}

func TestReadersCannotWriteSQLite(t *testing.T) {
	d := dbtest.SQLite(t, db.Options{})
	_, err := d.Read().Exec("INSERT INTO accounts (id, name, created_at) VALUES ('b', 'two', 0)")
	require.Error(t, err)
}

func TestLedgerIsAppendOnly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec(t, d, "INSERT INTO accounts (id, name, created_at) VALUES ('a', 'one', 0)")
		exec(t, d, `INSERT INTO ledger (id, account_id, type, amount, balance_before, balance_after, description, created_at)
			VALUES ('l', 'a', 'recharge', 5, 0, 5, '', 0)`)
		for _, statement := range []string{
			"UPDATE ledger SET amount = 6, balance_after = 6", "DELETE FROM ledger",
			`INSERT INTO ledger (id, account_id, type, amount, balance_before, balance_after, description, created_at)
			VALUES ('m', 'a', 'recharge', 5, 5, 11, '', 0)`,
		} {
			err := d.Write(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.Exec(statement)
				return err
			})
			require.Error(t, err, statement)
		}
	})
}

// TestConcurrentMigrations starts several migrations of one empty store at the same time, and again over the finished one.
// It covers T20 of test/README.md.
func TestConcurrentMigrations(t *testing.T) {
	together := func(t *testing.T, source string) {
		var wait sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wait.Go(func() {
				d, err := db.Open(t.Context(), source, db.Options{})
				if err != nil {
					errs[i] = err
					return
				}
				defer d.Close()
				errs[i] = d.Migrate(t.Context())
			})
		}
		wait.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		d := dbtest.Open(t, source, db.Options{})
		require.NoError(t, d.Migrate(t.Context()))
		version, err := d.Version(t.Context())
		require.NoError(t, err)
		assert.Positive(t, version)
		var prices, applied int
		require.NoError(t, d.Read().QueryRow("SELECT count(*) FROM prices").Scan(&prices))
		assert.Equal(t, 1, prices, "the migration ran once")
		require.NoError(t, d.Read().QueryRow("SELECT count(*) FROM goose_db_version WHERE version_id > 0").Scan(&applied))
		t.Logf("T20: 6 migrations at once and 1 after: %d applied, version %d", applied, version)
	}
	t.Run("sqlite", func(t *testing.T) { together(t, filepath.Join(t.TempDir(), "new.db")) })
	t.Run("postgres", func(t *testing.T) {
		if dbtest.Programs() == "" {
			t.Skip("PostgreSQL's server programs are not installed")
		}
		server, err := dbtest.StartServer()
		require.NoError(t, err)
		defer server.Close()
		require.NoError(t, server.CreateDatabase(t.Context(), "fresh", "template1"))
		together(t, server.Source("fresh"))
	})
}

// TestLockedSQLiteIsUnavailable holds the write lock past the busy timeout:
// writers get ErrUnavailable and succeed afterwards. It covers T3 of
// test/README.md.
func TestLockedSQLiteIsUnavailable(t *testing.T) {
	path := dbtest.SQLitePath(t)
	holder := dbtest.Open(t, path, db.Options{})
	d := dbtest.Open(t, path, db.Options{BusyTimeout: 200 * time.Millisecond})
	tx, err := holder.Write1(t.Context())
	require.NoError(t, err)
	begun := time.Now()
	err = d.Write(t.Context(), func(*sql.Tx) error { return nil })
	require.ErrorIs(t, err, db.ErrUnavailable)
	t.Logf("T3: locked store answered %q after %.2f s", err, time.Since(begun).Seconds())
	var n int
	require.NoError(t, d.Read().QueryRow("SELECT count(*) FROM accounts").Scan(&n), "readers continue")
	require.NoError(t, tx.Rollback())
	require.NoError(t, d.Write(t.Context(), func(*sql.Tx) error { return nil }))
}

// TestStoppedPostgresIsUnavailable stops the server of an open store: calls
// return ErrUnavailable until it runs again. It covers T3 of test/README.md.
func TestStoppedPostgresIsUnavailable(t *testing.T) {
	if dbtest.Programs() == "" {
		t.Skip("PostgreSQL's server programs are not installed")
	}
	server, err := dbtest.StartServer()
	require.NoError(t, err)
	defer server.Close()
	d := dbtest.Open(t, server.Source("postgres"), db.Options{})
	require.NoError(t, d.Migrate(t.Context()))
	exec(t, d, "INSERT INTO accounts (id, name, created_at) VALUES ('a', 'one', 0)")
	server.Stop()
	unavailable := 0
	for range 5 {
		err := d.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ('b', 'two', 0)")
			return err
		})
		require.ErrorIs(t, err, db.ErrUnavailable)
		require.ErrorIs(t, d.Ping(t.Context()), db.ErrUnavailable)
		unavailable++
	}
	require.NoError(t, server.Start())
	require.Eventually(t, func() bool { return d.Ping(t.Context()) == nil }, 10*time.Second, 20*time.Millisecond)
	var n int
	require.NoError(t, d.Read().QueryRow("SELECT count(*) FROM accounts").Scan(&n))
	assert.Equal(t, 1, n)
	t.Logf("T3: %d of 5 writes answered unavailable while the server was away, 1 of 1 rows there afterwards", unavailable)
}

// TestBackupUnderLoad copies a store while rows are written: the copy opens, is
// undamaged, and contains a prefix of the rows. It covers T24 of
// test/README.md.
func TestBackupUnderLoad(t *testing.T) {
	d := dbtest.SQLite(t, db.Options{})
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	written := 0
	wait.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := d.Write(context.Background(), func(tx *sql.Tx) error {
				_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ($1, $1, $2)", fmt.Sprintf("%06d", i), i)
				return err
			})
			if err != nil {
				t.Error(err)
				return
			}
			written++
		}
	})
	time.Sleep(50 * time.Millisecond)
	copied := filepath.Join(t.TempDir(), "copy.db")
	err := d.Backup(t.Context(), copied)
	time.Sleep(20 * time.Millisecond)
	stop()
	wait.Wait()
	require.NoError(t, err)
	require.Error(t, d.Backup(t.Context(), copied), "an existing file is not overwritten")
	back := dbtest.Open(t, copied, db.Options{})
	var rows, last int
	var verdict string
	require.NoError(t, back.Read().QueryRow("PRAGMA integrity_check").Scan(&verdict))
	assert.Equal(t, "ok", verdict)
	require.NoError(t, back.Read().QueryRow("SELECT count(*), COALESCE(max(created_at), -1) FROM accounts").Scan(&rows, &last))
	assert.Equal(t, rows, last+1, "a prefix of the written rows")
	assert.LessOrEqual(t, rows, written)
	require.NoError(t, back.Migrate(t.Context()))
	t.Logf("T24: backup under load holds %d of the %d rows written in the end, integrity %s", rows, written, verdict)
}

// TestFolderIsLocked locks a data folder twice. It covers T32 of
// test/README.md.
func TestFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	first, err := db.LockFolder(dir)
	require.NoError(t, err)
	_, err = db.LockFolder(dir)
	require.ErrorIs(t, err, db.ErrLocked)
	assert.Contains(t, err.Error(), fmt.Sprint(os.Getpid()))
	require.NoError(t, first.Close())
	again, err := db.LockFolder(dir)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	t.Logf("T32: 1 of 2 got the folder; the second was told %q", db.ErrLocked)
}

func TestRedact(t *testing.T) {
	for source, want := range map[string]string{
		"/data/otograph.db":                                          "/data/otograph.db",
		"postgres://db/x?sslmode=require":                            "postgres://db/x?sslmode=require",
		"postgres://someone@db/x":                                    "postgres://someone@db/x",
		"postgres://someone:geheim@db/x":                             "postgres://someone:xxxxx@db/x",
		"postgres://someone:ge%heim@db/x":                            "postgres://xxxxx@db/x",
		"postgres://db/x?password=geheim&user=me":                    "postgres://db/x?password=xxxxx&user=me",
		"postgres://db/x?password=ge%zz@heim&user=me":                "postgres://db/x?password=xxxxx&user=me",
		"postgres://db/x?sslcert=c&sslpassword=geheim&sslkey=k":      "postgres://db/x?sslcert=c&sslpassword=xxxxx&sslkey=k",
		"postgres://someone:geheim@db/x?sslpassword=geheim&sslkey=k": "postgres://someone:xxxxx@db/x?sslpassword=xxxxx&sslkey=k",
		"postgres://someone:ge/heim@db/x":                            "postgres://xxxxx@db/x",
		"postgres://someone:ge?heim@db/x":                            "postgres://xxxxx@db/x",
		"postgres://someone:ge#heim@db/x":                            "postgres://xxxxx@db/x",
		"postgres://someone:12/heim@db/x":                            "postgres://xxxxx@db/x",
		"postgres://someone:12?heim@db/x":                            "postgres://xxxxx@db/x",
		"postgres://someone:ge@he%zzim@db/x?sslmode=require":         "postgres://xxxxx@db/x?sslmode=require",
		"postgres://someone:12@ge/heim@db/x":                         "postgres://xxxxx@db/x",
		"dbname=x sslpassword=geheim user=me":                        "dbname=x sslpassword=xxxxx user=me",
		`dbname=x password = 'ge \' heim' user=me`:                   `dbname=x password = xxxxx user=me`,
	} {
		assert.Equal(t, want, db.Redact(source), source)
	}
	for _, source := range []string{
		"postgres://someone:ge%heim@db/x", "postgres://someone:ge/heim@db/x",
		"postgres://someone:geheim@ge%zzheim@db", "postgres://db:bad/x?password=ge@heim",
	} {
		_, err := db.Open(t.Context(), source, db.Options{})
		require.ErrorContains(t, err, "not an address", source)
		assert.NotContains(t, err.Error(), "heim")
	}
}

func TestOpenErrors(t *testing.T) {
	_, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "absent", "x.db"), db.Options{})
	require.ErrorIs(t, err, db.ErrUnavailable)
	_, err = db.Open(t.Context(), "postgres://someone:geheim@127.0.0.1:1/x", db.Options{})
	require.ErrorIs(t, err, db.ErrUnavailable)
	assert.NotContains(t, err.Error(), "geheim")
	t.Chdir(t.TempDir())
	for _, source := range []string{
		"mysql://someone:geheim@db/x", "postgress://someone:geheim@db/x", "host=db dbname=x password=geheim",
		"application_name=geheim host=db", "connect_timeout=5 password=geheim", " SSLPassword = geheim", "target_session_attrs=geheim",
	} {
		_, err := db.Open(t.Context(), source, db.Options{})
		require.ErrorContains(t, err, "expected postgres://", source)
		assert.NotErrorIs(t, err, db.ErrUnavailable, "not a temporary failure")
		assert.NotContains(t, err.Error(), "geheim")
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, entries, "a mistyped address creates no file")
	path, err := db.Open(t.Context(), "report=2026.db", db.Options{})
	require.NoError(t, err, "file names may contain the character")
	require.NoError(t, path.Close())
}

// TestNegativeLimitsAreTheDefaults opens a store with limits below zero.
func TestNegativeLimitsAreTheDefaults(t *testing.T) {
	d := dbtest.Open(t, dbtest.SQLitePath(t), db.Options{BusyTimeout: -time.Second, MaxConns: -1, Timeout: -time.Second})
	require.NoError(t, d.Write(t.Context(), func(*sql.Tx) error { return nil }))
	require.NoError(t, d.Ping(t.Context()))
}
