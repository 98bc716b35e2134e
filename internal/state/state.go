// Package state opens the service's state: the database, the file store, and what
// is kept in them.
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
	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/audit"
	"github.com/otograph/otograph/internal/backoff"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/tasks"
)

// Config names the state by address and says how it is opened. With Folder alone
// it is right for a short command: the tables must be up to date, and no file is
// touched.
type Config struct {
	// Folder holds the SQLite database and the files unless Database or Files
	// name another place.
	Folder   string
	Database string // postgres://…
	Files    string // file:///… or s3://…
	Logger   *slog.Logger

	Migrate    bool          // bring the tables up to date
	ClaimFiles bool          // the file store will be used: check it, and that it is this database's
	Wait       time.Duration // for a PostgreSQL database that is not there yet
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
	Audit    *audit.Log
}

// Open opens the state. The caller closes it.
func Open(ctx context.Context, c Config) (*State, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
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
		if err := tasks.ClaimFiles(ctx, s.DB, s.Files); err != nil {
			return err
		}
	}
	c.Tasks.DB, c.Tasks.Blobs, c.Tasks.Logger = s.DB, s.Files, c.Logger
	if s.Tasks, err = tasks.New(c.Tasks); err != nil {
		return err
	}
	s.Billing, s.Accounts, s.Audit = s.Tasks.Billing(), accounts.New(s.DB, nil), audit.New(s.DB, nil)
	return nil
}

// OpenFiles opens the file store alone.
func OpenFiles(ctx context.Context, c Config) (*blob.Store, error) {
	var options []blob.Option
	if c.ObserveFiles != nil {
		options = append(options, blob.WithObserver(c.ObserveFiles))
	}
	return blob.Open(ctx, cmp.Or(c.Files, filepath.Join(c.Folder, blob.DataFolder)), options...)
}

// databasePause is the time between two attempts to reach the database.
const databasePause = time.Second

// OpenDatabase opens the database alone, waits for it if c says so, and brings its
// tables up to date or checks that they are.
func OpenDatabase(ctx context.Context, c Config) (*db.DB, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	source := cmp.Or(c.Database, filepath.Join(c.Folder, db.DataFile))
	for begun := time.Now(); ; {
		d, err := db.Open(ctx, source, db.Options{Logger: c.Logger, Timeout: c.Timeout, Observe: c.ObserveDatabase})
		if err == nil {
			if err = schema(ctx, d, c.Migrate); err == nil {
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

// schema brings the tables up to date, or checks that they are.
func schema(ctx context.Context, d *db.DB, migrate bool) error {
	if migrate {
		return d.Migrate(ctx)
	}
	return d.CheckSchema(ctx)
}

// ForeignStoreError is returned for a file store that another database owns.
type ForeignStoreError struct{ Store, Owner, ID string }

// Error implements error.
func (e *ForeignStoreError) Error() string {
	return fmt.Sprintf("the file store %s belongs to database %s, not to this one (%s)", e.Store, e.Owner, e.ID)
}

// Identities returns the database's identity and the one that the file store
// belongs to, empty if it belongs to none yet.
func (s *State) Identities(ctx context.Context) (db.Identity, blob.Identity, error) {
	id, err := s.DB.Identity(ctx)
	if err != nil {
		return id, blob.Identity{}, err
	}
	found, err := s.Files.Identity(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return id, blob.Identity{}, nil
	}
	return id, found, err
}

// Adopt makes the file store the database's, whose identity it returns. A store of
// another database is taken only with force; else the error is a *ForeignStoreError.
func (s *State) Adopt(ctx context.Context, force bool) (db.Identity, error) {
	id, found, err := s.Identities(ctx)
	if err != nil {
		return id, err
	}
	if found.Database != "" && found.Database != id.ID && !force {
		return id, &ForeignStoreError{s.Files.Name(), found.Database, id.ID}
	}
	if _, err := s.Files.Adopt(ctx, tasks.StoreIdentity(id)); err != nil {
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
