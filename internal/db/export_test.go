package db

import (
	"context"
	"database/sql"
)

// Write1 begins a write transaction and leaves it to the test.
func (d *DB) Write1(ctx context.Context) (*sql.Tx, error) { return d.write.BeginTx(ctx, nil) }

// MigrateTo brings an empty store to an earlier version.
func (d *DB) MigrateTo(ctx context.Context, version int64) error {
	provider, err := d.migrations(d.write)
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return err
}
