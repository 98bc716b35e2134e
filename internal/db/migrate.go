package db

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrationLock is the advisory lock's key on PostgreSQL: the letters "otog".
const migrationLock = 0x6f746f67

// Migrate brings the tables up to date. It may be called by several processes at once: one works,
// the others wait and find nothing to do.
func (d *DB) Migrate(ctx context.Context) error {
	unlock, err := d.lockMigrations(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", d.classify(err))
	}
	defer unlock()
	provider, err := d.migrations()
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", d.classify(err))
	}
	for _, r := range results {
		d.logger.InfoContext(ctx, "database migrated", "version", r.Source.Version, "seconds", r.Duration.Seconds())
	}
	return nil
}

// migrations returns what applies the store's migrations.
func (d *DB) migrations() (*goose.Provider, error) {
	folder, dialect := "migrations/sqlite", goose.DialectSQLite3
	if d.dialect == Postgres {
		folder, dialect = "migrations/postgres", goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, d.write, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// lockMigrations waits until no other process migrates this store.
func (d *DB) lockMigrations(ctx context.Context) (unlock func(), err error) {
	if d.dialect == Postgres {
		conn, err := d.write.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
			conn.Close()
			return nil, err
		}
		return func() {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
			conn.Close()
		}, nil
	}
	f, err := os.OpenFile(d.source+".migrate-lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Version is the number of the last migration that was applied to the store, 0 for an empty one.
func (d *DB) Version(ctx context.Context) (int64, error) {
	var v sql.NullInt64
	if err := d.read.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version WHERE is_applied").Scan(&v); err != nil {
		return 0, d.classify(err)
	}
	return v.Int64, nil
}
