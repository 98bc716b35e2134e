package tasks

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/db"
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

// Maintainer takes back the work of dead processes and removes what is no longer needed. Several may run; the
// clean-up is a chore, which one of them at a time does.
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

// Run works until ctx is done.
func (m *Maintainer) Run(ctx context.Context) error {
	s := m.service
	dead := newWatch(s, m.config.DeadAfter, m.config.Interval)
	for {
		if _, err := dead.look(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "no look for dead workers", "error", err)
		}
		if err := s.chore(ctx, choreCleanup, m.config.Cleanup, m.Cleanup); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "clean-up not finished", "error", err)
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
