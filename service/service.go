// Package service is the transcription service for programs that mount it in
// their server:
//
//	s, err := service.Open(ctx, service.Config{Folder: "/var/lib/example"})
//	…
//	http.Handle("/v1/", s.Handler())
//	go s.Run(ctx)
//
// It is what `otograph serve` runs, without the flags. The tables are the same:
// other machines may run `otograph work` and `otograph account` on them.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/audit"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/safehttp"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/webhook"
	"github.com/otograph/otograph/internal/tasks/worker"
	"github.com/otograph/otograph/spec"
)

// Config configures a Service and the location of its state. Folder is required
// unless Database and Files are given. State is named by address: a Service
// opens SQLite once for reading and once for writing, and on PostgreSQL keeps a
// connection that listens, which a *sql.DB of the caller could not provide.
type Config struct {
	// Folder holds the SQLite database and the files, unless Database or Files
	// name another place. One Service runs on a folder.
	Folder string
	// Database is a PostgreSQL database ("postgres://…"), which several services
	// may share.
	Database string
	// Files is "file:///folder" or "s3://bucket?region=…".
	Files string
	// BasePath is the prefix of the endpoints; "" is "/v1".
	BasePath string
	// Engine works on the tasks in this process, one at a time; nil leaves them
	// to others (`otograph work`). Available is what its models can transcribe;
	// holds are priced by it.
	Engine    worker.Engine
	Available spec.Available
	// Prober determines the length of an upload, for the size of its hold; if
	// nil, the price of a minute is held.
	Prober tasks.Prober
	// Allow opens addresses that are not public to audio_url and callback_url:
	// networks ("10.0.0.0/8"), addresses, names ("nas.lan").
	Allow []string
	// Logger gets a line for each request and for what goes wrong; nil discards
	// them.
	Logger *slog.Logger
}

// Service is an open service. It is safe for concurrent use.
type Service struct {
	config   Config
	lock     *db.FolderLock // nil on PostgreSQL
	db       *db.DB
	files    *blob.Store
	tasks    *tasks.Service
	accounts *accounts.Store
	outbound *safehttp.Client
	audio    *safehttp.Client
	api      *httpapi.Server
}

// Open opens the service's state and brings its tables up to date. The caller
// closes the Service.
func Open(ctx context.Context, c Config) (*Service, error) {
	if c.Folder == "" && (c.Database == "" || c.Files == "") {
		return nil, errors.New("service: Config needs Folder, or Database and Files")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{config: c}
	for _, step := range []func(context.Context) error{s.openState, s.openNetwork, s.openAPI} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("service: %w", err), s.Close())
		}
	}
	return s, nil
}

// openState opens the database, the files and everything that depends on them.
func (s *Service) openState(ctx context.Context) (err error) {
	source, files := s.config.Database, s.config.Files
	if files == "" {
		files = filepath.Join(s.config.Folder, blob.DataFolder)
	}
	if source == "" {
		source = filepath.Join(s.config.Folder, db.DataFile)
		if s.lock, err = db.LockFolder(s.config.Folder); err != nil {
			return err
		}
	}
	if s.db, err = db.Open(ctx, source, db.Options{Logger: s.config.Logger}); err != nil {
		return err
	}
	if err := s.db.Migrate(ctx); err != nil {
		return err
	}
	if s.files, err = blob.Open(ctx, files); err != nil {
		return err
	}
	if err := tasks.ClaimFiles(ctx, s.db, s.files); err != nil {
		return err
	}
	s.accounts = accounts.New(s.db, nil)
	s.tasks, err = tasks.New(tasks.Config{DB: s.db, Blobs: s.files, Logger: s.config.Logger, Prober: s.config.Prober})
	return err
}

// openNetwork makes the clients for callbacks and for audio.
func (s *Service) openNetwork(context.Context) (err error) {
	if s.outbound, err = safehttp.New(safehttp.Config{Allow: s.config.Allow}); err != nil {
		return err
	}
	s.audio, err = safehttp.New(safehttp.Config{Allow: s.config.Allow, MaxRedirects: worker.MaxRedirects})
	return err
}

func (s *Service) openAPI(ctx context.Context) error {
	key, err := s.accounts.SigningKey(ctx)
	if err != nil {
		return err
	}
	s.api, err = httpapi.New(httpapi.Config{
		Tasks: s.tasks, Accounts: s.accounts, Money: s.tasks.Billing(), Audit: audit.New(s.db, nil), TokenKey: key, CheckURL: s.outbound.CheckURL,
		BasePath: s.config.BasePath, Ready: s.db.Ping, Logger: s.config.Logger,
	})
	return err
}

// Handler serves the endpoints under the base path, and the interface's
// description at /openapi.json and /docs.
func (s *Service) Handler() http.Handler { return s.api.Handler() }

// Run downloads audio, delivers callbacks, takes back the work of dead workers,
// removes what is no longer needed and, with an Engine, works on tasks, until
// ctx ends. It returns nil then.
func (s *Service) Run(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx)
	notifier, err := webhook.NewNotifier(s.tasks.Outbox(), s.tasks.Queue(), webhook.NotifierConfig{HTTP: s.outbound, Addresses: s.outbound.Addresses})
	if err != nil {
		return err
	}
	g.Go(func() error { return notifier.Run(running) })
	g.Go(func() error { return tasks.NewMaintainer(s.tasks, tasks.MaintainerConfig{}).Run(running) })
	fetcher, err := worker.NewFetcher(s.tasks, worker.FetcherConfig{HTTP: s.audio, Prober: s.config.Prober})
	if err != nil {
		return err
	}
	g.Go(func() error { return fetcher.Run(running) })
	if s.config.Engine != nil {
		w, err := worker.New(s.tasks, worker.Config{Engine: s.config.Engine, Prober: s.config.Prober, Available: s.config.Available})
		if err != nil {
			return err
		}
		g.Go(func() error { return w.Run(running) })
	}
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// Drain ends the requests that wait for a task and asks balancers to send
// requests elsewhere. Call it before http.Server.Shutdown.
func (s *Service) Drain() { s.api.Drain() }

// CreateAccount creates an account with a balance and returns its API key, which
// is not kept and cannot be shown again. An error says, for example, that the
// name is taken.
func (s *Service) CreateAccount(ctx context.Context, name string, balance billing.Money) (key string, err error) {
	account, err := s.accounts.Create(ctx, name)
	if err != nil {
		return "", err
	}
	if balance > 0 {
		if _, err := s.tasks.Billing().Recharge(ctx, account.ID, balance, "created"); err != nil {
			return "", err
		}
	}
	key, _, err = s.accounts.CreateKey(ctx, account.ID)
	return key, err
}

// Close closes the state. Run must have returned.
func (s *Service) Close() error {
	var errs []error
	for _, client := range []*safehttp.Client{s.outbound, s.audio} {
		if client != nil {
			client.Close()
		}
	}
	if s.files != nil {
		errs = append(errs, s.files.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
