package main

import (
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
	"github.com/otograph/otograph/internal/metrics"
	"github.com/otograph/otograph/internal/tasks"
)

// storeFlags say where the service keeps its state.
type storeFlags struct {
	Data     string `placeholder:"DIR" env:"OTOGRAPH_DATA" group:"Storage" help:"Data folder; default: otograph/service in the user's data folder."`
	Database string `placeholder:"URL" env:"OTOGRAPH_DATABASE" group:"Storage" help:"postgres://…; default: SQLite in the data folder."`
	Blobs    string `placeholder:"URL" env:"OTOGRAPH_BLOBS" group:"Storage" help:"file:///… or s3://bucket?…; default: a folder in the data folder."`
}

// stores are the open parts of the service's state.
type stores struct {
	folder   string
	db       *db.DB
	blobs    *blob.Store
	accounts *accounts.Store
	billing  *billing.Store
	tasks    *tasks.Service
	audit    *audit.Log
}

// opening configures how the state is opened. The zero value is right for a
// short command: the tables must be up to date, and no file is touched.
type opening struct {
	log           *slog.Logger
	keepAudio     time.Duration
	keepTasks     time.Duration // 0 keeps them for ever
	unknownLength time.Duration // 0 is the default of tasks.Config
	migrate       bool          // bring the tables up to date
	wait          time.Duration // for a database that is not there yet
	prober        tasks.Prober  // of uploads
	timeout       time.Duration // of a query or transaction; 0 is the default of db.Options
	files         bool          // the file store will be used: check it, and that it is this database's
	metrics       *metrics.Metrics
}

// open opens the state.
func (f *storeFlags) open(ctx context.Context, o opening) (*stores, error) {
	dir, err := f.folderOf(o)
	if err != nil {
		return nil, err
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	s := &stores{folder: dir}
	fail := func(err error) (*stores, error) { return nil, errors.Join(err, s.Close()) }
	if s.db, err = f.openDatabase(ctx, dir, o); err != nil {
		return fail(err)
	}
	var options []blob.Option
	if o.metrics != nil {
		options = append(options, blob.WithObserver(o.metrics.ObserveStore))
	}
	if s.blobs, err = f.openBlobs(ctx, dir, options...); err != nil {
		return fail(err)
	}
	if o.files {
		if err := s.claimFiles(ctx); err != nil {
			return fail(err)
		}
	}
	config := tasks.Config{DB: s.db, Blobs: s.blobs, Logger: o.log, KeepAudio: o.keepAudio, UnknownLength: o.unknownLength, KeepTasks: o.keepTasks, Prober: o.prober}
	if o.metrics != nil {
		config.Ended = o.metrics.AttemptEnded
	}
	if s.tasks, err = tasks.New(config); err != nil {
		return fail(err)
	}
	s.billing = s.tasks.Billing()
	s.accounts = accounts.New(s.db, nil)
	s.audit = audit.New(s.db, nil)
	return s, nil
}

// databasePause is the time between two attempts to reach the database.
const databasePause = time.Second

// openDatabase opens the database, waits for it if o says so, and sees to its
// tables.
func (f *storeFlags) openDatabase(ctx context.Context, dir string, o opening) (*db.DB, error) {
	source := f.Database
	if source == "" {
		source = filepath.Join(dir, db.DataFile)
	}
	options := db.Options{Logger: o.log, Timeout: o.timeout}
	if o.metrics != nil {
		options.Observe = o.metrics.ObserveDatabase
	}
	for begun := time.Now(); ; {
		d, err := db.Open(ctx, source, options)
		if err == nil {
			if err = schema(ctx, d, o.migrate); err == nil {
				return d, nil
			}
			err = errors.Join(err, d.Close())
		}
		waiting := errors.Is(err, db.ErrUnavailable) && !db.Refused(err) || errors.Is(err, db.ErrSchemaOld) && !o.migrate
		if !waiting || f.Database == "" || time.Since(begun)+databasePause > o.wait {
			return nil, err
		}
		o.log.WarnContext(ctx, "waiting for the database", "database", db.Redact(source), "error", err)
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
	err := d.CheckSchema(ctx)
	if errors.Is(err, db.ErrSchemaOld) {
		return fmt.Errorf("%w: run `otograph migrate`, or start `otograph serve`, first", err)
	}
	return err
}

// claimFiles checks that the file store works and that it belongs to the
// database. At a first start it becomes the database's.
func (s *stores) claimFiles(ctx context.Context) error {
	err := tasks.ClaimFiles(ctx, s.db, s.blobs)
	for _, foreign := range []error{blob.ErrForeign, blob.ErrUnclaimed, blob.ErrLost} {
		if errors.Is(err, foreign) {
			return fmt.Errorf("%w: correct --database or --blobs, or, if this database is to own these files from now on, run `otograph store adopt`", err)
		}
	}
	return err
}

// identities returns the database's identity and the one that the file store
// belongs to, empty if it belongs to none yet.
func (s *stores) identities(ctx context.Context) (db.Identity, blob.Identity, error) {
	id, err := s.db.Identity(ctx)
	if err != nil {
		return id, blob.Identity{}, err
	}
	found, err := s.blobs.Identity(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return id, blob.Identity{}, nil
	}
	return id, found, err
}

// foreignStoreError is returned for a file store that another database owns.
type foreignStoreError struct{ store, owner, id string }

func (e *foreignStoreError) Error() string {
	return fmt.Sprintf("the file store %s belongs to database %s, not to this one (%s)", e.store, e.owner, e.id)
}

// adopt makes the file store the database's, whose identity it returns. A store of
// another database is taken with force alone; else the error is a
// *foreignStoreError.
func (s *stores) adopt(ctx context.Context, force bool) (db.Identity, error) {
	id, found, err := s.identities(ctx)
	if err != nil {
		return id, err
	}
	if found.Database != "" && found.Database != id.ID && !force {
		return id, &foreignStoreError{s.blobs.Name(), found.Database, id.ID}
	}
	if _, err := s.blobs.Adopt(ctx, tasks.StoreIdentity(id)); err != nil {
		return id, err
	}
	return id, s.db.SetClaimed(ctx)
}

func (s *stores) Close() error {
	var errs []error
	if s.blobs != nil {
		errs = append(errs, s.blobs.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}

// with opens the state for one short command. Such a command never migrates.
func (f *storeFlags) with(ctx context.Context, work func(*stores) error) error {
	return f.withOpening(ctx, opening{}, work)
}

// withOpening is with, for a command that opens the state in its own way.
func (f *storeFlags) withOpening(ctx context.Context, o opening, work func(*stores) error) error {
	s, err := f.open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(work(s), s.Close())
}

// withAccount is with, for a command about one account.
func (f *storeFlags) withAccount(ctx context.Context, name string, work func(*stores, accounts.Account) error) error {
	return f.with(ctx, func(s *stores) error {
		a, err := s.accounts.Find(ctx, name)
		if err != nil {
			return fmt.Errorf("account %q: %w", name, err)
		}
		return work(s, a)
	})
}

type migrateCmd struct {
	storeFlags
	Check bool `help:"Verify the schema without changing it; fail if it is out of date."`
}

// Run brings the tables up to date.
func (c *migrateCmd) Run(ctx context.Context) error {
	o := opening{migrate: !c.Check}
	dir, err := c.folderOf(o)
	if err != nil {
		return err
	}
	d, err := c.openDatabase(ctx, dir, o)
	if err != nil {
		return err
	}
	version, err := d.Version(ctx)
	if err == nil {
		say("database %s: version %d\n", d.Source(), version)
	}
	return errors.Join(err, d.Close())
}

type storeCmd struct {
	Show  storeShowCmd  `cmd:"" help:"Show which database the file store belongs to."`
	Adopt storeAdoptCmd `cmd:"" help:"Assign the file store to this database."`
}

type storeShowCmd struct {
	storeFlags
}

func (c *storeShowCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		if err := s.blobs.Check(ctx); err != nil {
			return err
		}
		id, found, err := s.identities(ctx)
		if err != nil {
			return err
		}
		return printJSON(map[string]any{"store": s.blobs.Name(), "belongs_to": found, "database": tasks.StoreIdentity(id)})
	})
}

type storeAdoptCmd struct {
	storeFlags
	Yes bool `help:"Also adopt a store that belongs to another database."`
}

// Run makes the store this database's. No other server may use the store then:
// each one's clean-up would take the other's files for its own.
func (c *storeAdoptCmd) Run(ctx context.Context) error {
	return c.change(ctx, "store adopt", db.Redact(c.Blobs), "", func(s *stores) error {
		if err := s.blobs.Check(ctx); err != nil {
			return err
		}
		id, err := s.adopt(ctx, c.Yes)
		if foreign, ok := errors.AsType[*foreignStoreError](err); ok {
			return &usageError{fmt.Errorf("%w: if no service uses that database any longer, repeat this with --yes", foreign)}
		}
		if err != nil {
			return err
		}
		say("%s now belongs to database %s\n", s.blobs.Name(), id.ID)
		return nil
	})
}
