// Package state opens the service's state: the database, the file store, and
// the packages that use them.
package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// Config holds the addresses of the state and the ways to open it. Folder alone
// suits a short command: tables must be current, files are not touched.
type Config struct {
	// Folder contains the SQLite database and the files unless Database or
	// Files name other locations.
	Folder   string
	Database string // postgres://…
	Files    string // file:///… or s3://…
	Logger   *slog.Logger

	Migrate    bool          // migrate the tables
	ClaimFiles bool          // check the file store and that it belongs to this database
	Wait       time.Duration // for a PostgreSQL database that is not yet available
	Timeout    time.Duration // of a query or transaction; 0 is the default of db.Options

	// Tasks holds the rules of tasks; DB, Blobs and Logger are set by Open.
	Tasks tasks.Config
	// ObserveDatabase and ObserveFiles receive every operation; both may be nil.
	ObserveDatabase, ObserveFiles func(op string, took time.Duration, err error)
}

// State holds the open parts of the service's state.
type State struct {
	DB       *db.DB
	Files    *blob.Store
	Accounts *accounts.Store
	Billing  *billing.Store
	Tasks    *tasks.Service
	Erasure  *erasure.Eraser
}

// Open opens the state. The caller closes it.
func Open(ctx context.Context, c Config) (*State, error) {
	s := &State{}
	if err := s.open(ctx, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *State) open(ctx context.Context, c Config) (err error) {
	if s.DB, err = OpenDatabase(ctx, c); err != nil {
		return err
	}
	if s.Files, err = OpenFiles(ctx, c); err != nil {
		return err
	}
	if c.ClaimFiles {
		if err := claimFiles(ctx, s.DB, s.Files); err != nil {
			return err
		}
	}
	c.Tasks.DB, c.Tasks.Blobs, c.Tasks.Logger = s.DB, s.Files, c.Logger
	if s.Tasks, err = tasks.New(c.Tasks); err != nil {
		return err
	}
	s.Billing, s.Accounts = s.Tasks.Billing(), accounts.New(s.DB, c.Logger, nil)
	s.Erasure = &erasure.Eraser{DB: s.DB, Accounts: s.Accounts, Tasks: s.Tasks}
	return nil
}

// StoreIdentity returns the identity of this database's file store.
func StoreIdentity(id db.Identity) blob.Identity {
	return blob.Identity{Database: id.ID, Place: id.Place, Written: time.Now().UTC().Truncate(time.Second)}
}

// claimFiles checks that the file store works and that it belongs to the
// database. At the first start the database claims the store.
func claimFiles(ctx context.Context, d *db.DB, files *blob.Store) error {
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

// OpenFiles opens only the file store.
func OpenFiles(ctx context.Context, c Config) (*blob.Store, error) {
	files, err := blob.Open(ctx, cmp.Or(c.Files, filepath.Join(c.Folder, blob.DataFolder)))
	if err == nil && c.ObserveFiles != nil {
		files.Observe(c.ObserveFiles)
	}
	return files, err
}

// databasePause is the time between two attempts to reach the database.
const databasePause = time.Second

// OpenDatabase opens only the database. If c requests it, OpenDatabase waits
// for the database and migrates its tables; otherwise it checks that they are
// up to date.
func OpenDatabase(ctx context.Context, c Config) (*db.DB, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	source := cmp.Or(c.Database, filepath.Join(c.Folder, db.DataFile))
	for begun := time.Now(); ; {
		d, err := db.Open(ctx, source, db.Options{Logger: c.Logger, Timeout: c.Timeout, Observe: c.ObserveDatabase})
		if err == nil {
			check := d.CheckSchema
			if c.Migrate {
				check = d.Migrate
			}
			if err = check(ctx); err == nil {
				return d, nil
			}
			err = errors.Join(err, d.Close())
		}
		waiting := errors.Is(err, db.ErrUnavailable) && !db.Refused(err) || errors.Is(err, db.ErrSchemaOld) && !c.Migrate
		if !waiting || c.Database == "" || time.Since(begun)+databasePause > c.Wait {
			return nil, err
		}
		c.Logger.WarnContext(ctx, "waiting for the database", "database", db.Redact(source), "error", err)
		if !backoff.Sleep(ctx, databasePause) {
			return nil, ctx.Err()
		}
	}
}

// ForeignStoreError is returned for a file store that another database owns.
type ForeignStoreError struct{ Store, Owner, ID string }

// Error implements error.
func (e *ForeignStoreError) Error() string {
	return fmt.Sprintf("the file store %s belongs to database %s, not to this one (%s)", e.Store, e.Owner, e.ID)
}

// Identities returns the database's identity and that of the database that owns
// the file store, empty without one.
func (s *State) Identities(ctx context.Context) (db.Identity, blob.Identity, error) {
	id, err := s.DB.Identity(ctx)
	if err != nil {
		return id, blob.Identity{}, err
	}
	owner, err := s.Files.Identity(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return id, blob.Identity{}, nil
	}
	return id, owner, err
}

// Adopt assigns the file store to the database and returns the database's
// identity. A store of another database is only taken with force; otherwise the
// error is a *ForeignStoreError.
func (s *State) Adopt(ctx context.Context, force bool) (db.Identity, error) {
	id, owner, err := s.Identities(ctx)
	if err != nil {
		return id, err
	}
	if owner.Database != "" && owner.Database != id.ID && !force {
		return id, &ForeignStoreError{s.Files.Name(), owner.Database, id.ID}
	}
	if _, err := s.Files.Adopt(ctx, StoreIdentity(id)); err != nil {
		return id, err
	}
	return id, s.DB.SetClaimed(ctx)
}

// Close closes the files and the database.
func (s *State) Close() error {
	var errs []error
	if s.Files != nil {
		errs = append(errs, s.Files.Close())
	}
	if s.DB != nil {
		errs = append(errs, s.DB.Close())
	}
	return errors.Join(errs...)
}
