package db

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Identity identifies a database.
type Identity struct {
	ID string // a UUID, created by the first call
	// Place identifies the database's location: on PostgreSQL the cluster's
	// system identifier and the database's number, so that a dump restored
	// elsewhere has the same ID in another Place. It is empty on SQLite, and if
	// the server does not report it.
	Place   string
	Claimed bool // a file store belongs to the database
}

// Identity returns the database's identity. The tables must exist.
func (d *DB) Identity(ctx context.Context) (Identity, error) {
	var id Identity
	var claimed sql.NullInt64
	err := d.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO identity (one, id, created_at) VALUES (1, $1, $2) ON CONFLICT (one) DO NOTHING",
			uuid.NewString(), Micros(time.Now())); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT id, store_claimed_at FROM identity").Scan(&id.ID, &claimed)
	})
	if err != nil {
		return Identity{}, fmt.Errorf("database identity: %w", err)
	}
	id.Claimed = claimed.Valid
	if d.dialect == Postgres {
		// Some hosted servers refuse this query; then the ID must suffice.
		err := d.Read().QueryRowContext(ctx, `SELECT c.system_identifier || '/' || d.oid FROM pg_control_system() c, pg_database d
			WHERE d.datname = current_database()`).Scan(&id.Place)
		if err = d.trouble(err); err != nil {
			return Identity{}, fmt.Errorf("database identity: %w", err)
		}
	}
	return id, nil
}

// SetClaimed records that a file store belongs to this database.
func (d *DB) SetClaimed(ctx context.Context) error {
	_, err := d.Exec(ctx, "UPDATE identity SET store_claimed_at = COALESCE(store_claimed_at, $1)", Micros(time.Now()))
	return d.Wrap("database identity", err)
}
