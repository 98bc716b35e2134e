package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/db"
	"github.com/riverqueue/river"
)

// MaintainerConfig is what a Maintainer works with; zero values are the service's rules.
type MaintainerConfig struct {
	DeadAfter time.Duration // a process without a heartbeat for this long is taken for dead; default 30 s
	Interval  time.Duration // between looks for the dead; default 2 s
	Cleanup   time.Duration // between clean-ups; default 1 min
	OrphanAge time.Duration // files that nothing points at go when they are this old; default 24 h
}

// How long ended callbacks are kept for the list.
const (
	keepDelivered = 7 * 24 * time.Hour
	keepGivenUp   = 30 * 24 * time.Hour
)

// Maintainer takes back the work of dead processes and removes what is no longer needed. Several may run; the clean-up
// jobs are River's, so that one of them works on each.
type Maintainer struct {
	service *Service
	config  MaintainerConfig
}

// NewMaintainer returns a maintainer over a service.
func NewMaintainer(s *Service, c MaintainerConfig) *Maintainer {
	setDefault(&c.DeadAfter, 30*time.Second)
	setDefault(&c.Interval, 2*time.Second)
	setDefault(&c.Cleanup, time.Minute)
	setDefault(&c.OrphanAge, 24*time.Hour)
	return &Maintainer{service: s, config: c}
}

// cleanupWorker runs the clean-up job.
type cleanupWorker struct {
	river.WorkerDefaults[cleanupArgs]
	maintainer *Maintainer
}

// Work implements river.Worker.
func (w *cleanupWorker) Work(ctx context.Context, _ *river.Job[cleanupArgs]) error {
	return w.maintainer.Cleanup(ctx)
}

// Run works until ctx is done.
func (m *Maintainer) Run(ctx context.Context) error {
	s := m.service
	workers := river.NewWorkers()
	river.AddWorker(workers, &cleanupWorker{maintainer: m})
	client, err := river.NewClient(s.db.RiverDriver(), &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{queueMaintenance: {MaxWorkers: 1}},
		Workers: workers,
		// Our jobs carry their own times and the watch below takes back those of the dead: River's own limits, made for
		// short jobs, must never end or repeat one.
		JobTimeout:           -1,
		RescueStuckJobsAfter: 20 * 365 * 24 * time.Hour,
		FetchPollInterval:    2 * time.Second,
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(m.config.Cleanup), func() (river.JobArgs, *river.InsertOpts) {
			return cleanupArgs{}, &river.InsertOpts{Queue: queueMaintenance, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: m.config.Cleanup}}
		}, &river.PeriodicJobOpts{RunOnStart: true})},
	})
	if err != nil {
		return fmt.Errorf("tasks: queue: %w", err)
	}
	// The queue's own housekeeping must not be the reason why the service does not start: it is tried until it works.
	started := false
	defer func() {
		if !started {
			return
		}
		last, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer done()
		if err := client.StopAndCancel(last); err != nil {
			s.log.WarnContext(ctx, "queue's housekeeping not stopped", "error", err)
		}
	}()
	dead := newWatch(s, m.config.DeadAfter, m.config.Interval)
	for {
		if !started {
			if err := client.Start(context.WithoutCancel(ctx)); err != nil {
				s.log.WarnContext(ctx, "queue's housekeeping waits for the database", "error", err)
			} else {
				started = true
			}
		}
		if _, err := dead.look(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "no look for dead workers", "error", err)
		}
		if !sleep(ctx, m.config.Interval) {
			return nil
		}
	}
}

// Cleanup removes files that are due, forgets idempotency keys and callbacks that are old, and collects orphaned files.
func (m *Maintainer) Cleanup(ctx context.Context) error {
	s := m.service
	failed := s.sweepDoomed(ctx)
	now := s.now()
	for _, forget := range []struct {
		statement string
		before    time.Time
	}{
		{"DELETE FROM idempotency WHERE created_at < $1", now.Add(-idempotencyAge)},
		{"DELETE FROM callbacks WHERE phase = 'delivered' AND updated_at < $1", now.Add(-keepDelivered)},
		{"DELETE FROM callbacks WHERE phase = 'given_up' AND updated_at < $1", now.Add(-keepGivenUp)},
	} {
		err := s.db.Write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, forget.statement, db.Micros(forget.before))
			return err
		})
		failed = errors.Join(failed, s.wrap("clean up", err))
	}
	n, err := s.blobs.Collect(ctx, m.config.OrphanAge, s.claimed)
	if n > 0 {
		s.log.InfoContext(ctx, "orphaned files removed", "files", n)
	}
	return errors.Join(failed, err)
}

// claimed says which files something points at.
func (s *Service) claimed(ctx context.Context, keys []string) (map[string]bool, error) {
	kept := map[string]bool{}
	for _, key := range keys {
		query, args := "SELECT COUNT(*) FROM tasks WHERE audio_blob = $1", []any{key}
		parts := strings.Split(key, "/")
		switch {
		case parts[0] == "checkpoints" && len(parts) > 1:
			query, args = "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase <> 'final'", []any{parts[1]}
		case parts[0] == "results" && len(parts) == 2 && len(parts[1]) > 36: // begins with the task's id
			query, args = "SELECT COUNT(*) FROM tasks WHERE id = $1 AND result_blob = $2", []any{parts[1][:36], key}
		}
		var n int
		if err := s.db.Read().QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
			return nil, s.wrap("clean up", err)
		}
		kept[key] = n > 0
	}
	return kept, nil
}
