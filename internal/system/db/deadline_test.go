package db_test

import (
	"context"
	"database/sql"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestDroppedPacketsEndCalls opens PostgreSQL through a proxy that then drops
// all packets: running and new calls end with ErrUnavailable, and calls succeed
// again when the network recovers.
func TestDroppedPacketsEndCalls(t *testing.T) {
	proxy, through := dbtest.Proxied(t, dbtest.PostgresSource(t))
	const limit = 500 * time.Millisecond
	var failed atomic.Int64
	d := dbtest.Open(t, through, db.Options{Timeout: limit, Observe: func(_ string, _ time.Duration, err error) {
		if err != nil {
			failed.Add(1)
		}
	}})
	count := func() (n int, err error) {
		err = d.Read().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM accounts").Scan(&n)
		return n, d.Classify(err)
	}
	insert := func(id string) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "INSERT INTO accounts (id, name, created_at) VALUES ($1, $1, 0)", id)
			return err
		}
	}
	require.NoError(t, d.Write(t.Context(), insert("before")))

	partition := func(name string, work func() error) {
		begun := time.Now()
		err := work()
		require.ErrorIs(t, err, db.ErrUnavailable, name)
		t.Logf("%s ended after %d ms with a limit of %s: %v", name, time.Since(begun).Milliseconds(), limit, err)
	}
	partition("a transaction that is under way", func() error {
		return d.Write(t.Context(), func(tx *sql.Tx) error {
			if err := insert("lost")(tx); err != nil {
				return err
			}
			proxy.Drop()
			return insert("never")(tx)
		})
	})
	partition("a read", func() error { _, err := count(); return err })
	partition("a transaction", func() error { return d.Write(t.Context(), insert("never")) })
	partition("a list", func() error {
		rows, err := d.Read().QueryContext(t.Context(), "SELECT id FROM accounts")
		if err != nil {
			return d.Classify(err)
		}
		defer rows.Close()
		return d.Classify(rows.Err())
	})
	partition("a ping", func() error { return d.Ping(t.Context()) })
	partition("opening it", func() error {
		_, err := db.Open(t.Context(), through, db.Options{Timeout: limit})
		return err
	})
	assert.EqualValues(t, 4, failed.Load(), "every query and transaction was observed")

	proxy.Pass()
	require.Eventually(t, func() bool { n, err := count(); return err == nil && n == 1 }, 20*time.Second, 50*time.Millisecond,
		"only the row from before the partition is there")
	require.NoError(t, d.Write(t.Context(), insert("after")))
}

// TestPostgresHasTimeLimits reads PostgreSQL's own time limits from a
// connection, and waits for a lock that is never released.
func TestPostgresHasTimeLimits(t *testing.T) {
	source := dbtest.PostgresSource(t)
	d := dbtest.Open(t, source, db.Options{Timeout: 2 * time.Second})
	for name, want := range map[string]string{"statement_timeout": "1min", "lock_timeout": "1500ms", "idle_in_transaction_session_timeout": "1min"} {
		var got string
		require.NoError(t, d.Read().QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&got))
		assert.Equal(t, want, got, name)
	}
	holder, err := dbtest.Open(t, source, db.Options{}).Write1(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec("LOCK TABLE accounts")
	require.NoError(t, err)
	err = d.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("UPDATE accounts SET name = name")
		return err
	})
	require.ErrorIs(t, err, db.ErrUnavailable)
	assert.Contains(t, err.Error(), "lock timeout")
	require.NoError(t, holder.Rollback())

	own := source + "&statement_timeout=1234"
	var got string
	require.NoError(t, dbtest.Open(t, own, db.Options{}).Read().QueryRowContext(t.Context(), "SELECT current_setting('statement_timeout')").Scan(&got))
	assert.Equal(t, "1234ms", got, "settings of the connection string are kept")
}

// TestPatientTransactionsTakeLonger allows single transactions more time than
// the store's usual limit.
func TestPatientTransactionsTakeLonger(t *testing.T) {
	d := dbtest.Postgres(t, db.Options{Timeout: 2 * time.Second}) // the limit also covers connecting
	nap := func(ctx context.Context) error {
		return d.Write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "SELECT pg_sleep(3)")
			return err
		})
	}
	require.ErrorIs(t, nap(t.Context()), db.ErrUnavailable)
	require.NoError(t, nap(db.Patient(t.Context(), time.Minute)))
}

// TestSchemaIsCompared compares three stores with the program: without tables,
// up to date, and migrated by a later release. Rows are kept.
func TestSchemaIsCompared(t *testing.T) {
	check := func(t *testing.T, d *db.DB) {
		err := d.CheckSchema(t.Context())
		require.ErrorIs(t, err, db.ErrSchemaOld)
		assert.Contains(t, err.Error(), "version 0, this program works with")
		require.NoError(t, d.Migrate(t.Context()))
		require.NoError(t, d.CheckSchema(t.Context()))
		exec(t, d, "INSERT INTO accounts (id, name, created_at) VALUES ('a', 'customer', 1)")
		require.NoError(t, d.MigrateNext(t.Context(), "ALTER TABLE accounts ADD COLUMN color text NOT NULL DEFAULT 'red';"))
		var color string
		require.NoError(t, d.Read().QueryRow("SELECT color FROM accounts WHERE name = 'customer'").Scan(&color))
		assert.Equal(t, "red", color)
		for _, err := range []error{d.CheckSchema(t.Context()), d.Migrate(t.Context())} {
			require.ErrorIs(t, err, db.ErrSchemaNew)
			assert.Contains(t, err.Error(), "version 99, this program knows up to")
		}
	}
	t.Run("sqlite", func(t *testing.T) { check(t, dbtest.Open(t, filepath.Join(t.TempDir(), "new.db"), db.Options{})) })
	t.Run("postgres", func(t *testing.T) { check(t, dbtest.Open(t, emptyPostgres(t), db.Options{})) })
}

// TestMigrationWaitsForAReader migrates while a reader uses a table: other
// readers continue meanwhile, and the migration ends after the reader.
func TestMigrationWaitsForAReader(t *testing.T) {
	source := dbtest.PostgresSource(t)
	d := dbtest.Open(t, source, db.Options{})
	holder, err := dbtest.Open(t, source, db.Options{}).Read().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, holder.QueryRow("SELECT COUNT(*) FROM tasks").Scan(&n))
	migrated := make(chan error, 1)
	go func() { migrated <- d.MigrateNext(context.Background(), "ALTER TABLE tasks ADD COLUMN color text;") }()
	reads, longest := 0, time.Duration(0)
	for begun := time.Now(); time.Since(begun) < 4*time.Second; time.Sleep(20 * time.Millisecond) {
		one := time.Now()
		require.NoError(t, d.Read().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tasks").Scan(&n), "lock_timeout is set by the migration")
		longest = max(longest, time.Since(one))
		reads++
	}
	select {
	case err := <-migrated:
		t.Fatalf("the migration did not wait: %v", err)
	default:
	}
	require.NoError(t, holder.Rollback())
	require.NoError(t, <-migrated)
	require.ErrorIs(t, d.CheckSchema(t.Context()), db.ErrSchemaNew)
	t.Logf("a migration behind a reader for 4 s: %d reads went on, the longest took %d ms", reads, longest.Milliseconds())
}

// TestMigrationRetriesAfterADeadlock migrates while a transaction locks the
// accounts and then the tasks: the server aborts the migration, which is
// retried.
func TestMigrationRetriesAfterADeadlock(t *testing.T) {
	source := dbtest.PostgresSource(t)
	d := dbtest.Open(t, source, db.Options{})
	holder, err := dbtest.Open(t, source, db.Options{}).Read().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, statement := range []string{"SET LOCAL lock_timeout = 0", "SET LOCAL deadlock_timeout = '10min'", "LOCK TABLE accounts IN ROW EXCLUSIVE MODE"} {
		_, err := holder.Exec(statement)
		require.NoError(t, err)
	}
	migrated := make(chan error, 1)
	go func() {
		migrated <- d.MigrateNext(context.Background(), "ALTER TABLE tasks ADD COLUMN color text; ALTER TABLE accounts ADD COLUMN color text;")
	}()
	require.Eventually(t, func() bool {
		var waiting int
		err := d.Read().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_locks WHERE relation = 'accounts'::regclass AND NOT granted").Scan(&waiting)
		return assert.NoError(t, err) && waiting > 0
	}, 30*time.Second, 5*time.Millisecond)
	var n int
	require.NoError(t, holder.QueryRow("SELECT COUNT(*) FROM tasks").Scan(&n))
	require.NoError(t, holder.Rollback())
	require.NoError(t, <-migrated)
	require.ErrorIs(t, d.CheckSchema(t.Context()), db.ErrSchemaNew)
}

func emptyPostgres(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(dbtest.PostgresSource(t)) // skips the test without PostgreSQL
	require.NoError(t, err)
	admin := dbtest.Open(t, "postgres://postgres@/postgres?"+u.RawQuery, db.Options{MaxConns: 1})
	name := "empty_" + strings.TrimPrefix(u.Path, "/")
	_, err = admin.Read().ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = admin.Read().Exec("DROP DATABASE " + name + " WITH (FORCE)") })
	return "postgres://postgres@/" + name + "?" + u.RawQuery
}

// TestIdentity checks that a database keeps its id, and that a copy has the
// same id in another place.
func TestIdentity(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		first, err := d.Identity(t.Context())
		require.NoError(t, err)
		assert.Len(t, first.ID, 36)
		assert.False(t, first.Claimed)
		assert.Equal(t, d.Dialect() == db.Postgres, first.Place != "", "%q", first.Place)
		require.NoError(t, d.SetClaimed(t.Context()))
		again, err := d.Identity(t.Context())
		require.NoError(t, err)
		first.Claimed = true
		assert.Equal(t, first, again)
	})
	one, err := dbtest.Postgres(t, db.Options{}).Identity(t.Context())
	require.NoError(t, err)
	two, err := dbtest.Postgres(t, db.Options{}).Identity(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, one.ID, two.ID)
	assert.NotEqual(t, one.Place, two.Place)
}

func TestProxiedSource(t *testing.T) {
	_, through := dbtest.Proxied(t, dbtest.PostgresSource(t))
	u, err := url.Parse(through)
	require.NoError(t, err)
	host, _, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", host)
	require.NoError(t, dbtest.Open(t, through, db.Options{}).Ping(t.Context()))
}
