package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
)

// Run runs everything but the HTTP handlers until ctx is done, and then returns
// nil: it downloads audio, delivers callbacks, takes back the work of dead
// workers, removes old tasks and files, follows the token key's rotation, and
// runs tasks with Config's Engine and Workers. Call it once.
func (s *Service) Run(ctx context.Context) error {
	maintainer := tasks.NewMaintainer(s.state.Tasks, tasks.MaintainerConfig{Fold: s.state.Accounts.FoldVoices}) // takes back work and cleans up
	s.counts.Workers(maintainer.Workers)
	parts := []runner{maintainer}
	for _, part := range []func() (runner, error){s.notifier, s.fetcher, s.supervisor, s.worker} {
		p, err := part()
		if err != nil {
			return err // nothing runs yet
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	if s.sessions != nil {
		parts = append(parts, s.sessions)
		if s.config.Live.Wyoming != nil {
			parts = append(parts, wyomingServer{s})
		}
	}
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return s.followKey(running) })
	for _, p := range parts {
		g.Go(func() error { return p.Run(running) })
	}
	err := g.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // our own end
		return nil
	}
	return err
}

// runner is a part of the service that works until its context is done.
type runner interface{ Run(context.Context) error }

func (s *Service) notifier() (runner, error) {
	return webhook.NewNotifier(s.state.Tasks.Outbox(), s.state.Tasks.Queue(), webhook.NotifierConfig{
		HTTP: s.counts.MeasureCallbacks(s.outbound), Version: s.config.Version,
	})
}

// fetcher returns the part that downloads audio, nil if other services do that.
func (s *Service) fetcher() (runner, error) {
	c := s.config
	if c.Fetches < 0 {
		return nil, nil
	}
	fetches := worker.FetcherConfig{
		HTTP: s.audio, Version: c.Version, Outage: s.counts.Outage("fetcher"),
		AtOnce: c.Fetches, PerAccount: c.FetchesPerAccount, PerHost: c.FetchesPerHost, Limit: c.FetchLimit, Grace: c.Grace,
	}
	if p, ok := c.Prober.(interface {
		CheckHead(filename string, head []byte) error
	}); ok {
		fetches.Check = p.CheckHead
	}
	return worker.NewFetcher(s.state.Tasks.Runs, fetches)
}

// supervisor returns the part that keeps worker processes, nil without any.
func (s *Service) supervisor() (runner, error) {
	w := s.config.Workers
	if w.N <= 0 {
		return nil, nil
	}
	supervisor, err := s.processes(w, s.config.Grace)
	if err != nil {
		return nil, err
	}
	s.counts.Restarts(supervisor.Restarts)
	return supervisor, nil
}

// processes returns the supervisor of processes that may take grace to end.
func (s *Service) processes(w Workers, grace time.Duration) (*worker.Supervisor, error) {
	return worker.NewSupervisor(s.state.Tasks.Runs, worker.SupervisorConfig{
		Command: w.Command, Fallback: w.Fallback, Env: w.Env, N: w.N, Stdout: os.Stderr, Stderr: os.Stderr, Version: s.config.Version, Grace: grace, Start: s.config.StallTimeout,
	})
}

// worker returns the part that runs tasks here, nil without an engine.
func (s *Service) worker() (runner, error) {
	if s.config.Engine == nil {
		return nil, nil
	}
	return newWorker(context.Background(), s.config, s.state, s.counts)
}

// newWorker returns a worker; gone is worker.Config.Gone.
func newWorker(gone context.Context, c Config, s *state.State, counts *metrics.Metrics) (*worker.Worker, error) {
	w := worker.Config{
		Engine: counts.MeasureEngine(c.Engine), Prober: c.Prober, Version: c.Version,
		Grace: c.Grace, Gone: gone, StallTimeout: c.StallTimeout, Outage: counts.Outage("worker"),
	}
	if e, ok := c.Engine.(interface{ Available() spec.Available }); ok {
		w.Available = e.Available()
	}
	if e, ok := c.Engine.(interface{ CheckModels(context.Context) error }); ok {
		w.Models = e.CheckModels
	}
	return worker.New(s.Tasks.Runs, w)
}

// KeyInterval is the longest time to notice a rotated token key.
const KeyInterval = 5 * time.Second

// followKey passes the token key to the API each time it is rotated (`otograph
// user logout --all`), until ctx is done.
func (s *Service) followKey(ctx context.Context) error {
	return backoff.Every(ctx, KeyInterval, func() error {
		key, err := s.state.Accounts.SigningKey(ctx)
		switch {
		case err != nil:
			s.config.Logger.WarnContext(ctx, "token key not read", "error", err)
		case !bytes.Equal(key, s.key):
			if err := s.api.SetTokenKey(key); err != nil {
				return err
			}
			s.key = key
			s.config.Logger.InfoContext(ctx, "the token key was rotated")
		}
		return nil
	})
}

const metricsInterval = 5 * time.Second

// Work runs the tasks of a service with Config's Engine, or its live sessions
// with Live.Host, until ctx is done or the service that started this process is
// gone. A process of Config.Workers does nothing else and then ends; the tables
// must be up to date.
func Work(ctx context.Context, c Config) error {
	if c.KeepSchema = true; c.Engine == nil && c.Live.Host == nil {
		return fmt.Errorf("service: %w", &ConfigError{"Engine", errors.New("is required")})
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	c = c.withDefaults()
	ctx, gone, stop := worker.Supervised(ctx)
	defer stop()
	counts := describe(metrics.NewWorker("worker-"+strconv.Itoa(os.Getpid())), c.Version)
	s, err := openState(ctx, c, counts)
	if err != nil {
		return err
	}
	defer s.Close()
	work := func(ctx context.Context) error { return hostLive(ctx, c, s) }
	if c.Live.Host == nil {
		w, err := newWorker(gone, c, s, counts)
		if err != nil {
			return err
		}
		work = w.Run
	}
	written, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	if c.Folder != "" {
		writer.Go(func() {
			counts.WriteFiles(written, filepath.Join(c.Folder, state.MetricsFolder), metricsInterval, c.Logger)
		})
	}
	defer writer.Wait()
	defer cancel()
	return work(ctx)
}

// ExitCode returns the exit code for an error of Work. It distinguishes an
// unavailable database or store from a crash.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case tasks.Outage(err):
		return worker.ExitAway
	}
	return 1
}
