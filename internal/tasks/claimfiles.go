package tasks

import (
	"context"
	"time"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
)

// StoreIdentity returns the identity that a file store of this database must
// have.
func StoreIdentity(id db.Identity) blob.Identity {
	return blob.Identity{Database: id.ID, Place: id.Place, Written: time.Now().UTC().Truncate(time.Second)}
}

// ClaimFiles checks that the file store works and that it belongs to the
// database. At the first start the database claims the store. Errors wrap
// blob.ErrForeign, blob.ErrUnclaimed or blob.ErrLost for a store that must not
// be used.
func ClaimFiles(ctx context.Context, d *db.DB, files *blob.Store) error {
	if err := files.Probe(ctx); err != nil {
		return err
	}
	id, err := d.Identity(ctx)
	if err != nil {
		return err
	}
	if err := files.Claim(ctx, StoreIdentity(id), id.Claimed); err != nil || id.Claimed {
		return err
	}
	return d.SetClaimed(ctx)
}
