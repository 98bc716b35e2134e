package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/service"
)

// storeFlags configures where the service stores its state.
type storeFlags struct {
	Data     string `placeholder:"DIR" env:"OTOGRAPH_DATA" group:"Storage" help:"Data folder; default: otograph/service in the user's data folder."`
	Database string `placeholder:"URL" env:"OTOGRAPH_DATABASE" group:"Storage" help:"postgres://…; default: SQLite in the data folder."`
	Blobs    string `placeholder:"URL" env:"OTOGRAPH_BLOBS" group:"Storage" help:"file:///… or s3://bucket?…; default: a folder in the data folder."`
}

// stores holds the open parts of the service's state.
type stores = state.State

// config returns the location of the state. With SQLite, the folder of a
// service that must already exist (migrate is false) is not created.
func (f *storeFlags) config(migrate bool) (state.Config, error) {
	dir, err := f.folderOf(migrate)
	return state.Config{Folder: dir, Database: f.Database, Files: f.Blobs, Migrate: migrate}, err
}

// advise adds a remedy to an error of opening the state.
func advise(err error) error {
	switch {
	case errors.Is(err, db.ErrSchemaOld):
		return fmt.Errorf("%w: run `otograph migrate`, or start `otograph serve`, first", err)
	case errors.Is(err, blob.ErrForeign), errors.Is(err, blob.ErrUnclaimed), errors.Is(err, blob.ErrLost):
		return fmt.Errorf("%w: correct --database or --blobs, or, if this database is to own these files from now on, run `otograph store --adopt`", err)
	}
	return err
}

// flagError is like advise, and names the flag if a field of service.Config is
// invalid.
func flagError(err error) error {
	if wrong, ok := errors.AsType[*service.ConfigError](err); ok {
		return &usageError{fmt.Errorf("--%s %w", flagName(wrong.Field), wrong.Unwrap())}
	}
	return advise(err)
}

// with opens the state for one short command. Such a command never migrates.
func (f *storeFlags) with(ctx context.Context, work func(*stores) error) error {
	return f.withRules(ctx, tasks.Config{}, work)
}

// withRules is like with, for a command that applies rules to tasks.
func (f *storeFlags) withRules(ctx context.Context, rules tasks.Config, work func(*stores) error) error {
	c, err := f.config(false)
	if err != nil {
		return err
	}
	c.Tasks = rules
	s, err := state.Open(ctx, c)
	if err != nil {
		return advise(err)
	}
	return errors.Join(work(s), s.Close())
}

// withAccount is like with, for a command about one account.
func (f *storeFlags) withAccount(ctx context.Context, name string, work func(*stores, accounts.Account) error) error {
	return f.with(ctx, func(s *stores) error {
		a, err := s.Accounts.Find(ctx, name)
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

// Run migrates the tables.
func (c *migrateCmd) Run(ctx context.Context) error {
	config, err := c.config(!c.Check)
	if err != nil {
		return err
	}
	d, err := state.OpenDatabase(ctx, config)
	if err != nil {
		return advise(err)
	}
	version, err := d.Version(ctx)
	if err == nil {
		say("database %s: version %d\n", d.Source(), version)
	}
	return errors.Join(err, d.Close())
}

// storeCmd shows which database the file store belongs to, or changes it.
type storeCmd struct {
	storeFlags
	Adopt bool `help:"Assign the file store to this database."`
	Yes   bool `help:"Also adopt a store that belongs to another database."`
}

func (c *storeCmd) Run(ctx context.Context) error {
	if c.Adopt {
		return c.change(ctx, "store adopt", db.Redact(c.Blobs), "", func(s *stores) error { return c.adopt(ctx, s) })
	}
	if c.Yes {
		return &usageError{errors.New("store: --yes belongs to --adopt")}
	}
	return c.with(ctx, func(s *stores) error {
		if err := s.Files.Check(ctx); err != nil {
			return err
		}
		id, found, err := s.Identities(ctx)
		if err != nil {
			return err
		}
		return printJSON(map[string]any{"store": s.Files.Name(), "belongs_to": found, "database": state.StoreIdentity(id)})
	})
}

// adopt assigns the store to this database. No other server may use the store
// then, because each one's clean-up would delete the other's files.
func (c *storeCmd) adopt(ctx context.Context, s *stores) error {
	if err := s.Files.Check(ctx); err != nil {
		return err
	}
	id, err := s.Adopt(ctx, c.Yes)
	if foreign, ok := errors.AsType[*state.ForeignStoreError](err); ok {
		return &usageError{fmt.Errorf("%w: if no service uses that database any longer, repeat this with --yes", foreign)}
	}
	if err != nil {
		return err
	}
	say("%s now belongs to database %s\n", s.Files.Name(), id.ID)
	return nil
}
