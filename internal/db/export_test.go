package db

import (
	"context"
	"database/sql"
)

// Write1 begins a write transaction and leaves it to the test.
func (d *DB) Write1(ctx context.Context) (*sql.Tx, error) { return d.write.BeginTx(ctx, nil) }
