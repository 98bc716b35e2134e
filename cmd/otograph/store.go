package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/tasks"
)

// storeFlags say where the service keeps its state.
type storeFlags struct {
	Data     string `placeholder:"DIR" env:"OTOGRAPH_DATA" group:"Storage" help:"Data folder; default: otograph/service in the user's data folder."`
	Database string `placeholder:"URL" env:"OTOGRAPH_DATABASE" group:"Storage" help:"postgres://…; default: SQLite in the data folder."`
	Blobs    string `placeholder:"URL" env:"OTOGRAPH_BLOBS" group:"Storage" help:"file:///… or s3://bucket?…; default: a folder in the data folder."`
}

// folder is the data folder, made when it is not there.
func (f *storeFlags) folder() (string, error) {
	dir := f.Data
	if dir == "" {
		data := os.Getenv("XDG_DATA_HOME")
		if !filepath.IsAbs(data) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("data folder: %w; name one with --data", err)
			}
			data = filepath.Join(home, ".local", "share")
		}
		dir = filepath.Join(data, "otograph", "service")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// stores are the open parts of the service's state.
type stores struct {
	folder   string
	db       *db.DB
	blobs    *blob.Store
	accounts *accounts.Store
	billing  *billing.Store
	tasks    *tasks.Service
}

// open opens the state and brings its tables up to date.
func (f *storeFlags) open(ctx context.Context, log *slog.Logger, keepAudio time.Duration) (*stores, error) {
	dir, err := f.folder()
	if err != nil {
		return nil, err
	}
	source := f.Database
	if source == "" {
		source = filepath.Join(dir, "otograph.db")
	}
	s := &stores{folder: dir}
	if s.db, err = db.Open(ctx, source, db.Options{}); err != nil {
		return nil, err
	}
	fail := func(err error) (*stores, error) { return nil, errors.Join(err, s.Close()) }
	if err := s.db.Migrate(ctx); err != nil {
		return fail(err)
	}
	where := f.Blobs
	if where == "" {
		where = filepath.Join(dir, "blobs")
	}
	if s.blobs, err = blob.Open(ctx, where); err != nil {
		return fail(err)
	}
	if s.tasks, err = tasks.New(tasks.Config{DB: s.db, Blobs: s.blobs, Logger: log, KeepAudio: keepAudio}); err != nil {
		return fail(err)
	}
	s.billing = s.tasks.Billing()
	s.accounts = accounts.New(s.db, nil)
	return s, nil
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

// with opens the state for one short command.
func (f *storeFlags) with(ctx context.Context, work func(*stores) error) error {
	s, err := f.open(ctx, nil, 0)
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
