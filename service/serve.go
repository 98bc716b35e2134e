package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/httpserver"
)

// Serve is Run, and serves requests on a listener, within Config's limits. If
// ops is not nil, it serves /healthz, /readyz and /metrics. When ctx is done,
// Serve drains: it returns at most DrainDelay and Grace later.
func (s *Service) Serve(ctx context.Context, l, ops net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	closing := s.closing(ctx)
	listen := func(l net.Listener, h http.Handler) {
		server := httpserver.HTTPServer(h, s.config.Logger)
		g.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		g.Go(func() error {
			<-closing
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
			defer cancel()
			if err := server.Shutdown(grace); err != nil {
				return server.Close()
			}
			return nil
		})
	}
	listen(s.limited(l), s.Handler())
	if ops != nil {
		listen(ops, s.OpsHandler())
	}
	g.Go(func() error { return s.Run(ctx) })
	return g.Wait()
}

func (s *Service) limited(l net.Listener) net.Listener {
	refused := s.counts.RefusedConnections()
	return fairuse.NewListener(l, fairuse.ConnectionLimits{
		Total: s.config.MaxConnections, PerAddress: s.config.ConnectionsPerAddress, Proxies: s.proxies,
		Refused: func(address string) {
			refused()
			s.config.Logger.Debug("connection refused: too many open connections", "from", address)
		},
	})
}

// closing returns a channel that is closed when the listeners must close: after
// ctx is done and load balancers could notice.
func (s *Service) closing(ctx context.Context) <-chan struct{} {
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		<-ctx.Done()
		s.config.Logger.Info("stopping: requests and running tasks finish", "at_most", s.config.Grace.String())
		s.api.Leave()
		time.Sleep(s.config.DrainDelay)
		s.Drain() // no request waits any longer
	}()
	return closing
}

// Load balancers probe often. The database and the file store are checked less
// often, and a hanging check does not delay the response.
const (
	readyAge   = time.Second
	readyLimit = 2 * time.Second
)

// readiness reports whether all dependencies of requests work. It is safe for
// concurrent use: callers share the result of the last second.
type readiness struct {
	checks map[string]func(context.Context) error
	turn   *semaphore.Weighted // of the one check that runs
	at     time.Time
	err    error
}

func newReadiness(checks map[string]func(context.Context) error) *readiness {
	return &readiness{checks: checks, turn: semaphore.NewWeighted(1)}
}

// check returns nil if every check passed within readyLimit, otherwise an error
// that names the failed checks.
func (r *readiness) check(ctx context.Context) error {
	if err := r.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.turn.Release(1)
	if !r.at.IsZero() && time.Since(r.at) < readyAge {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyLimit)
	defer cancel()
	answers := map[string]chan error{}
	for name, ask := range r.checks {
		answer := make(chan error, 1)
		answers[name] = answer
		go func() { answer <- ask(ctx) }()
	}
	r.err = nil
	for name, answer := range answers {
		var err error
		select {
		case err = <-answer:
		case <-ctx.Done():
			select {
			case err = <-answer: // it came while another check hung
			default:
				err = fmt.Errorf("no response within %s", readyLimit)
			}
		}
		if err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s: %w", name, err))
		}
	}
	r.at = time.Now()
	return r.err
}
