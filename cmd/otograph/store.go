package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/spec"
)

// storeFlags configures where the service stores its state.
type storeFlags struct {
	Data     string `placeholder:"DIR" env:"OTOGRAPH_DATA" group:"Storage" help:"Data folder; default: otograph/service in the user's data folder."`
	Database string `placeholder:"URL" env:"OTOGRAPH_DATABASE" group:"Storage" help:"postgres://…; default: SQLite in the data folder."`
	Blobs    string `placeholder:"URL" env:"OTOGRAPH_BLOBS" group:"Storage" help:"file:///… or s3://bucket?…; default: a folder in the data folder."`

	claims bool // whether the file store must be the database's own
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

// flagError is like advise, and names the flag of an invalid Config field.
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
	c.Tasks, c.ClaimFiles = rules, f.claims
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
	return errors.Join(sayUnless(err, "database %s: version %d\n", d.Source(), version), d.Close())
}

// storeCmd shows which database the file store belongs to, or changes it.
type storeCmd struct {
	storeFlags
	Adopt bool `help:"Assign the file store to this database."`
	Yes   bool `help:"Also adopt a store that belongs to another database."`
}

func (c *storeCmd) Run(ctx context.Context) error {
	if c.Adopt {
		// No other server may use the store then, because each one's clean-up would
		// delete the other's files.
		return c.change(ctx, "store adopt", db.Redact(c.Blobs), "", func(s *stores) error {
			if err := s.Files.Check(ctx); err != nil {
				return err
			}
			id, err := s.Adopt(ctx, c.Yes)
			if foreign, ok := errors.AsType[*state.ForeignStoreError](err); ok {
				return &usageError{fmt.Errorf("%w: if no service uses that database any longer, repeat this with --yes", foreign)}
			}
			return sayUnless(err, "%s now belongs to database %s\n", s.Files.Name(), id.ID)
		})
	}
	if c.Yes {
		return &usageError{errors.New("store: --yes belongs to --adopt")}
	}
	return c.with(ctx, func(s *stores) error {
		if err := s.Files.Check(ctx); err != nil {
			return err
		}
		id, found, err := s.Identities(ctx)
		return printAnswer(map[string]any{"store": s.Files.Name(), "belongs_to": found, "database": state.StoreIdentity(id)}, err)
	})
}

// folder returns the data folder, created if missing and closed to others.
func (f *storeFlags) folder() (string, error) {
	keepFilesPrivate() // new files of this process are also private
	dir := f.Data
	if dir == "" {
		var err error
		if dir, err = host.DataDir("service"); err != nil {
			return "", fmt.Errorf("data folder: %w; name one with --data", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err = state.PrepareFolder(dir); errors.Is(err, state.ErrOpenFolder) {
		err = fmt.Errorf("%w (--data)", err)
	}
	return dir, err
}

// folderOf is like folder for a command about an existing service: with SQLite
// a missing folder is an error, and is not created.
func (f *storeFlags) folderOf(migrate bool) (string, error) {
	if f.Database == "" && !migrate && f.Data != "" {
		if _, err := os.Stat(f.Data); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("data folder %s: does not exist: correct --data, or start `otograph serve` first", f.Data)
		}
	}
	return f.folder()
}

type auditCmd struct {
	storeFlags
	Verify string `placeholder:"FILE" help:"Verify a receipt of a deletion with this database's key, and print its content."`
	Since  string `placeholder:"TIME" help:"Earliest time: 2027-01-31, an RFC 3339 time, or a duration such as -24h (--since=-24h)."`
	Limit  int    `default:"100" placeholder:"N" help:"Number of entries, newest first."`
	JSON   bool   `help:"Print as JSON."`
}

func (c *auditCmd) Run(ctx context.Context) error {
	since, err := timeFlag(time.UTC, "since", c.Since)
	if err != nil {
		return err
	}
	return c.with(ctx, func(s *stores) error {
		if c.Verify != "" {
			text, err := os.ReadFile(c.Verify)
			if err != nil {
				return err
			}
			r, err := s.Erasure.Verify(ctx, strings.TrimSpace(string(text)))
			if err != nil {
				return fmt.Errorf("%s: not a receipt of this database: %w", c.Verify, err)
			}
			return printJSON(r)
		}
		entries, err := s.Accounts.AuditLog(ctx, since, c.Limit)
		if err != nil {
			return err
		}
		return printList(c.JSON, entries, []string{"TIME", "OPERATOR", "ACTION", "SUBJECT", "DETAIL"}, func(t table, e accounts.AuditEntry) {
			t.row(e.At.Format(time.RFC3339), e.Operator, e.Action, spec.Shorten(e.Subject), spec.Shorten(e.Detail))
		})
	})
}

// change is like with, for a command that changes something: the audit log
// records the change before it is made, and again if it fails.
func (f *storeFlags) change(ctx context.Context, action, subject, detail string, work func(*stores) error) error {
	return f.with(ctx, func(s *stores) error {
		return recorded(ctx, s, action, subject, detail, func() error { return work(s) })
	})
}

// changeAccount is like change, for a command about one account.
func (f *storeFlags) changeAccount(ctx context.Context, action, name, detail string, work func(*stores, accounts.Account) error) error {
	return f.withAccount(ctx, name, func(s *stores, a accounts.Account) error {
		return recorded(ctx, s, action, a.Name, detail, func() error { return work(s, a) })
	})
}

// recorded writes a change to the audit log and then makes it.
func recorded(ctx context.Context, s *stores, action, subject, detail string, work func() error) error {
	return s.Accounts.Audit(ctx, accounts.AuditEntry{Operator: accounts.Operator(), Action: action, Subject: subject, Detail: detail}, work)
}
