package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/host"
)

//go:embed migrations
var migrations embed.FS

// migrationLock is the advisory lock's key on PostgreSQL: the letters "otog".
const migrationLock = 0x6f746f67

// Errors for a store whose tables do not match this program.
var (
	// ErrSchemaOld is returned when migrations are missing.
	ErrSchemaOld = errors.New("the database's tables are older than this program")
	// ErrSchemaNew is returned when a newer program has migrated the store.
	ErrSchemaNew = errors.New("the database's tables are newer than this program")
)

// On PostgreSQL, a migration waits this long for a table in use, because all
// later statements wait for the migration, and then retries.
const (
	migrationLockWait = 2 * time.Second
	migrationPause    = time.Second
	migrationTries    = 20
	migrationPoll     = 50 * time.Millisecond // between two checks whether another process still migrates
)

// Migrate updates the tables to this program's version. Several processes may
// call it simultaneously: one migrates, the others wait. If a newer program has
// migrated the store, the error wraps ErrSchemaNew and nothing changes.
func (d *DB) Migrate(ctx context.Context) error { return d.migrate(ctx, migrations) }

// migrate is Migrate with migrations from files, a folder per dialect.
func (d *DB) migrate(ctx context.Context, files fs.FS) error {
	pool, done := d.migrationPool()
	defer done()
	unlock, err := d.lockMigrations(ctx, pool)
	if err != nil {
		return fmt.Errorf("migrate: %w", d.Classify(err))
	}
	defer unlock()
	provider, err := d.provider(pool, files)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := d.checkSchema(ctx, provider); !errors.Is(err, ErrSchemaOld) {
		return err
	}
	for try := 1; ; try++ {
		results, err := provider.Up(ctx)
		if n := len(results); n > 0 {
			d.logger.InfoContext(ctx, "database migrated", "version", results[n-1].Source.Version, "steps", n)
		}
		if err == nil {
			return nil
		}
		inUse := slices.Contains([]string{codeLockTimeout, codeDeadlock}, postgresCode(err))
		if !inUse || try == migrationTries || ctx.Err() != nil {
			return fmt.Errorf("migrate: %w", d.Classify(err))
		}
		d.logger.WarnContext(ctx, "migration waits for a table that is in use", "try", try, "of", migrationTries)
		backoff.Sleep(ctx, migrationPause)
	}
}

// CheckSchema returns nil if the tables match this program, else an error that
// wraps ErrSchemaOld or ErrSchemaNew.
func (d *DB) CheckSchema(ctx context.Context) error {
	provider, err := d.provider(d.write, migrations)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return d.checkSchema(ctx, provider)
}

func (d *DB) checkSchema(ctx context.Context, provider *goose.Provider) error {
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	version, err := d.Version(ctx)
	switch {
	case err != nil:
		return err
	case version < newest:
		return fmt.Errorf("%w: version %d, this program works with %d", ErrSchemaOld, version, newest)
	case version > newest:
		return fmt.Errorf("%w: version %d, this program knows up to %d; use the program that migrated it, or a newer one", ErrSchemaNew, version, newest)
	}
	return nil
}

// provider returns goose's provider of the dialect's files over pool.
func (d *DB) provider(pool *sql.DB, files fs.FS) (*goose.Provider, error) {
	folder, dialect := "migrations/sqlite", goose.DialectSQLite3
	if d.dialect == Postgres {
		folder, dialect = "migrations/postgres", goose.DialectPostgres
	}
	files, err := fs.Sub(files, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, pool, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// migrationPool returns connections whose statements may take as long as they
// need, but do not wait long for locks.
func (d *DB) migrationPool() (pool *sql.DB, done func()) {
	if d.dialect != Postgres {
		return d.write, func() {}
	}
	config := d.config.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(migrationLockWait.Milliseconds(), 10)
	pool = stdlib.OpenDB(*config)
	return pool, func() { pool.Close() }
}

// lockMigrations waits until no other process migrates this store.
func (d *DB) lockMigrations(ctx context.Context, pool *sql.DB) (unlock func(), err error) {
	if d.dialect == Postgres {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		// The lock is polled: a waiting statement would be a transaction, and
		// building an index CONCURRENTLY waits for all transactions.
		for locked := false; !locked; {
			if err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT pg_try_advisory_lock(%d)", migrationLock)).Scan(&locked); err != nil {
				conn.Close()
				return nil, err
			}
			if !locked && !backoff.Sleep(ctx, migrationPoll) {
				conn.Close()
				return nil, context.Cause(ctx)
			}
		}
		return func() {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("SELECT pg_advisory_unlock(%d)", migrationLock))
			conn.Close()
		}, nil
	}
	f, err := os.OpenFile(d.source+".migrate-lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := host.WaitLock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Version returns the number of the last migration, 0 for an empty store.
func (d *DB) Version(ctx context.Context) (int64, error) {
	there := "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'"
	if d.dialect == Postgres {
		there = "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('goose_db_version')"
	}
	var tables int
	if err := d.Read().QueryRowContext(ctx, there).Scan(&tables); err != nil || tables == 0 {
		return 0, d.Classify(err)
	}
	var v sql.NullInt64
	if err := d.Read().QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version WHERE is_applied").Scan(&v); err != nil {
		return 0, d.Classify(err)
	}
	return v.Int64, nil
}
