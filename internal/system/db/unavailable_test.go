package db_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestReadOnlyPostgres checks that a read-only server, such as a standby during
// a failover, is an outage and not an error of the statement, and that writes
// succeed afterwards.
func TestReadOnlyPostgres(t *testing.T) {
	if dbtest.Programs() == "" {
		t.Skip("PostgreSQL's server programs are not installed")
	}
	server, err := dbtest.StartServer()
	require.NoError(t, err)
	defer server.Close()
	source := server.Source("postgres")
	d := dbtest.Open(t, source, db.Options{})
	require.NoError(t, d.Migrate(t.Context()))
	operator, err := sql.Open("pgx", source+"&default_transaction_read_only=off")
	require.NoError(t, err)
	defer operator.Close()
	turn := func(to string) {
		_, err := operator.Exec("ALTER SYSTEM SET default_transaction_read_only = " + to)
		require.NoError(t, err)
		_, err = operator.Exec("SELECT pg_reload_conf()")
		require.NoError(t, err)
	}
	write := func() error {
		return d.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO accounts (id, name, created_at) VALUES ('a', 'one', 0)")
			return err
		})
	}
	turn("on")
	require.Eventually(t, func() bool {
		var mode string
		return d.Read().QueryRowContext(t.Context(), "SHOW default_transaction_read_only").Scan(&mode) == nil && mode == "on"
	}, 10*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, write(), db.ErrUnavailable)
	require.NoError(t, d.Ping(t.Context()))
	turn("off")
	require.Eventually(t, func() bool { return write() == nil }, 10*time.Second, 10*time.Millisecond)
}

func TestPostgresFailuresAreClassified(t *testing.T) {
	d := dbtest.SQLite(t, db.Options{})
	for code, unavailable := range map[string]bool{
		"25006": true, "28P01": true, "3D000": true, "40001": true, "42501": true, "42P01": true, "53300": true, "55P03": true, "57P01": true, "57P03": true,
		"58030": true, "XX001": true, "22021": false, "23505": false, "25P02": false, "42601": false,
	} {
		assert.Equal(t, unavailable, db.Outage(d.Classify(&pgconn.PgError{Code: code})), code)
	}
	assert.True(t, db.Refused(&pgconn.PgError{Code: "28P01"}))
	assert.False(t, db.Refused(&pgconn.PgError{Code: "25006"}))
}

// TestFileThatIsNotADatabase checks that a damaged file is a permanent failure
// of the store.
func TestFileThatIsNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, os.WriteFile(path, []byte("This is a text and not a database, and it is long enough."), 0o600))
	_, err := db.Open(t.Context(), path, db.Options{})
	require.ErrorIs(t, err, db.ErrUnavailable)
	assert.True(t, db.Refused(err))
}
