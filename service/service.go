// Package service is the transcription service, to mount in a server:
//
//	s, err := service.Open(ctx, service.Config{Folder: dir, Engine: engine.New(p, "1.0", nil)})
//	http.Handle("/v1/", s.Handler())
//	go s.Run(ctx)
//
// `otograph serve` and `otograph work` are this package with flags. The tables are
// the same: other machines may run `otograph work` and `otograph account` on them.
//
// Nothing native is linked; package service/engine links a pipeline.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/httpserver"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/system/safehttp"
)

// Service is an open service. It is safe for concurrent use.
type Service struct {
	config   Config
	lock     io.Closer // of the data folder; nil on PostgreSQL
	state    *state.State
	counts   *metrics.Metrics
	proxies  fairuse.Proxies
	outbound *safehttp.Client // checks URLs and delivers callbacks
	audio    *safehttp.Client
	key      []byte // signs access tokens
	api      *httpserver.Server
	sessions *sessions.Sessions // nil without live sessions
}

// Open opens the state and migrates its tables. The caller closes it.
func Open(ctx context.Context, c Config) (*Service, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s := &Service{config: c.withDefaults()}
	for _, step := range []func(context.Context) error{s.openNetwork, s.openState, s.openAPI} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("service: %w", err), s.Close())
		}
	}
	return s, nil
}

func (s *Service) openNetwork(context.Context) (err error) {
	c := s.config
	if s.proxies, err = fairuse.ParseProxies(c.TrustedProxies); err != nil {
		return &ConfigError{"TrustedProxies", fmt.Errorf("is wrong: %w", err)}
	}
	network := safehttp.Config{Allow: c.AllowOutbound, Deny: c.DenyOutbound}
	if c.Version != "" {
		network.UserAgent = "otograph/" + c.Version
	}
	if s.outbound, err = safehttp.New(network); err != nil {
		return &ConfigError{"AllowOutbound", fmt.Errorf("or DenyOutbound is wrong: %w", err)}
	}
	network.MaxRedirects = worker.MaxRedirects
	s.audio, err = safehttp.New(network)
	return err
}

func (s *Service) openState(ctx context.Context) (err error) {
	if s.config.Folder != "" {
		if err := state.PrepareFolder(s.config.Folder); err != nil {
			return err
		}
	}
	if s.config.Database == "" { // SQLite and its folder belong to one server
		if s.lock, err = db.LockFolder(s.config.Folder); err != nil {
			return fmt.Errorf("%s: %w: does another service run on it?", s.config.Folder, err)
		}
	}
	s.counts = describe(metrics.New(func(ctx context.Context) (tasks.Stats, error) { return s.state.Tasks.Stats(ctx) }), s.config.Version)
	if s.config.Folder != "" {
		s.counts.ReadFiles(filepath.Join(s.config.Folder, state.MetricsFolder))
	}
	s.state, err = openState(ctx, s.config, s.counts)
	return err
}

// describe adds the metrics that describe the program.
func describe(counts *metrics.Metrics, version string) *metrics.Metrics {
	counts.Build(version)
	cage := audio.Sandbox()
	counts.Cage(map[string]bool{
		"landlock": cage.Landlock > 0, "seccomp": cage.Seccomp, "no_new_privileges": cage.NoNewPrivileges,
		"no_capabilities": cage.CapabilitiesDropped, "limits": cage.Limits, "namespaces": cage.Namespaces,
	})
	return counts
}

// openState opens the state of a service or a worker.
func openState(ctx context.Context, c Config, counts *metrics.Metrics) (*state.State, error) {
	return state.Open(ctx, state.Config{
		Folder: c.Folder, Database: c.Database, Files: c.Files, Logger: c.Logger,
		Migrate: !c.KeepSchema, ClaimFiles: true, Wait: c.DatabaseWait, Timeout: c.DatabaseLimit,
		Tasks: tasks.Config{
			KeepAudio: c.KeepAudio, KeepTasks: c.KeepTasks, UnknownLength: c.UnknownLength, Prober: c.Prober, CallbackTail: c.CallbackTail, Ended: counts.AttemptEnded,
		},
		ObserveDatabase: counts.ObserveDatabase, ObserveFiles: counts.ObserveStore,
	})
}

func (s *Service) openAPI(ctx context.Context) (err error) {
	if s.key, err = s.state.Accounts.SigningKey(ctx); err != nil {
		return err
	}
	ready := newReadiness(map[string]func(context.Context) error{"database": s.state.DB.Ping, "file store": s.state.Files.Check})
	config := httpserver.Config{
		Tasks: s.state.Tasks.Owners, Accounts: s.state.Accounts, Money: s.state.Billing, Erasure: s.state.Erasure, TokenKey: s.key, CheckURL: s.outbound.CheckURL,
		Rate: accounts.NewBuckets(s.config.FrontEnds), BasePath: s.config.BasePath, Hosts: s.config.Hosts, Origins: s.config.Origins, ModelAliases: s.config.ModelAliases, StrictModels: s.config.StrictModels, TrustedProxies: s.proxies, Ready: ready.check,
		Metrics: s.counts, Web: s.config.Page, Ops: s.config.Ops, Logger: s.config.Logger,
	}
	if s.sessions, err = s.openLive(); err != nil {
		return err
	}
	if s.sessions != nil {
		config.Live, config.LongestLive, config.Unpack = s.sessions, s.config.Live.Longest, audio.Unpack
	}
	if s.config.SharedRates {
		config.Rate = s.state.Accounts
	}
	s.api, err = httpserver.New(config)
	return err
}

// Handler serves the endpoints under the base path, the interface's description
// at /openapi.json and /docs, and the paths that Config adds.
func (s *Service) Handler() http.Handler { return s.api.Handler() }

// OpsHandler serves /healthz, /readyz and /metrics at a separate place.
func (s *Service) OpsHandler() http.Handler { return s.api.OpsHandler() }

// Drain makes /readyz fail, so that load balancers send requests elsewhere, and
// ends the requests that wait for a task. Call it before http.Server.Shutdown.
func (s *Service) Drain() { s.api.Drain() }

// CreateAccount creates an account with a balance and returns its API key,
// which is not shown again. It fails, for example, if the name is taken.
func (s *Service) CreateAccount(ctx context.Context, name string, balance billing.Money) (key string, err error) {
	key, _, err = s.createAccount(ctx, name, balance, "created")
	return key, err
}

// createAccount is CreateAccount, and returns the account's id; why is the
// description of the balance's ledger entry.
func (s *Service) createAccount(ctx context.Context, name string, balance billing.Money, why string) (key, id string, err error) {
	account, err := s.state.Accounts.Create(ctx, name)
	if err == nil && balance > 0 {
		_, err = s.state.Billing.Recharge(ctx, account.ID, balance, why)
	}
	if err != nil {
		return "", "", err
	}
	key, _, err = s.state.Accounts.CreateKey(ctx, account.ID, accounts.KeyOptions{})
	return key, account.ID, err
}

// ownersTier is the tier of the first account, which belongs to the machine's
// owner rather than to a customer.
const ownersTier = 5

// CreateFirstAccount is CreateAccount for a service without any account; else
// the key is "". The account has the limits of the highest tier.
func (s *Service) CreateFirstAccount(ctx context.Context, name string, balance billing.Money) (key string, err error) {
	list, err := s.state.Accounts.List(ctx)
	if err != nil || len(list) > 0 {
		return "", err
	}
	key, id, err := s.createAccount(ctx, name, balance, "first start")
	if err != nil {
		return "", err
	}
	return key, s.state.Accounts.SetTier(ctx, id, ownersTier)
}

// Close closes the state. Run must have returned.
func (s *Service) Close() error {
	var errs []error
	for _, client := range []*safehttp.Client{s.outbound, s.audio} {
		if client != nil {
			client.Close()
		}
	}
	if s.state != nil {
		errs = append(errs, s.state.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
		s.lock = nil // Close may be called again
	}
	return errors.Join(errs...)
}
