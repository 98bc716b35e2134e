package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/db"
)

// MaintainerConfig configures a Maintainer; zero values are the defaults.
type MaintainerConfig struct {
	DeadAfter    time.Duration // a process without a heartbeat for this long counts as dead; default 30 s
	Interval     time.Duration // between checks for dead processes; default 2 s
	Cleanup      time.Duration // between clean-ups; default 1 min
	Collect      time.Duration // between collections of orphaned files; default 24 h
	Check        time.Duration // between checks of the running sums and balances; default 24 h
	CollectAfter time.Duration // how long a process runs before it collects; default 1 h
	// Fold removes deleted voices from SQLite's write-ahead log; may be nil.
	Fold func(context.Context) error
}

// Maintainer takes back the work of dead processes and removes data that is no
// longer needed. Several may run; one at a time does the clean-up, a chore.
type Maintainer struct {
	service *Service
	config  MaintainerConfig
	dead    *queue.Watch
}

// NewMaintainer returns a maintainer of a service.
func NewMaintainer(s *Service, c MaintainerConfig) *Maintainer {
	c.DeadAfter = cmp.Or(c.DeadAfter, 30*time.Second)
	c.Interval = cmp.Or(c.Interval, 2*time.Second)
	c.Cleanup = cmp.Or(c.Cleanup, time.Minute)
	c.Collect = cmp.Or(c.Collect, 24*time.Hour)
	c.Check = cmp.Or(c.Check, 24*time.Hour)
	c.CollectAfter = cmp.Or(c.CollectAfter, time.Hour)
	if c.Fold == nil {
		c.Fold = func(context.Context) error { return nil }
	}
	return &Maintainer{service: s, config: c, dead: s.Watch(c.DeadAfter, c.Interval)}
}

// Workers returns the number of live worker processes on all machines. It is 0
// before Run's first check.
func (m *Maintainer) Workers() int { return m.dead.Living() }

// Watch returns a watch that takes back the work of dead members.
func (s *Runs) Watch(after, interval time.Duration) *queue.Watch {
	return s.queue.NewWatch(after, interval, func(ctx context.Context, id, reason string) error {
		_, err := s.Reap(ctx, id, EndInterrupted, "the worker was lost: "+reason)
		return err
	})
}

// Run works until ctx is done.
func (m *Maintainer) Run(ctx context.Context) error {
	begun := time.Now()
	warn := func(message string, err error) {
		if err != nil && ctx.Err() == nil {
			m.service.Config.Logger.WarnContext(ctx, message, "error", err)
		}
	}
	for {
		_, err := m.dead.Look(ctx)
		warn("failed to look for dead workers", err)
		warn("clean-up not finished", m.service.queue.Chore(ctx, "cleanup", m.config.Cleanup, m.Cleanup))
		warn("sums not checked", m.service.queue.Chore(ctx, "check sums", m.config.Check, m.check))
		if time.Since(begun) >= m.config.CollectAfter { // not soon after a start, which may be misconfigured
			warn("orphaned files not collected", m.service.queue.Chore(ctx, "collect", m.config.Collect, m.collect))
		}
		if !backoff.Sleep(ctx, m.config.Interval) {
			return nil
		}
	}
}

// Cleanup removes tasks past their retention, files that are due, old
// idempotency keys and callbacks, and deleted voices in SQLite's log.
func (m *Maintainer) Cleanup(ctx context.Context) error {
	s := m.service
	failed := errors.Join(s.expire(ctx), s.deleteDue(ctx))
	_, err := s.Config.DB.Exec(ctx, "DELETE FROM idempotency WHERE created_at < $1", db.Micros(s.now().Add(-idempotencyAge)))
	if err := m.config.Fold(ctx); err != nil {
		s.Config.Logger.InfoContext(ctx, "the write-ahead log is not folded yet: the next clean-up tries again", "error", err)
	}
	return errors.Join(failed, s.wrap("clean up", err), s.outbox.Forget(ctx))
}

// check compares balances with the ledger and running sums with their rows. It
// logs differences and corrects sums; an operator must correct a balance.
func (m *Maintainer) check(ctx context.Context) error {
	different, err := m.service.billing.Check(ctx, true)
	for _, d := range different {
		m.service.Config.Logger.ErrorContext(ctx, "a stored sum differs from the sum of its rows", "account", d.Account, "figure", d.Figure, "stored", d.Stored, "real", d.Real)
	}
	return err
}

func (m *Maintainer) collect(ctx context.Context) error {
	counts, err := m.service.Collect(ctx, CollectConfig{})
	if err == nil {
		m.service.Config.Logger.InfoContext(ctx, "orphaned files collected", "files", counts.Files, "orphans", counts.Orphans, "marked", counts.Marked, "deleted", counts.Deleted)
	}
	return err
}

// Referenced reports for each key whether a row refers to the file.
func (s *core) Referenced(ctx context.Context, keys []string) (map[string]bool, error) {
	var audio, checkpoints, results []string
	for _, key := range keys {
		switch parts := strings.Split(key, "/"); {
		case parts[0] == "checkpoints" && len(parts) > 1:
			checkpoints = append(checkpoints, parts[1])
		case parts[0] == "results" && len(parts) == 2 && len(parts[1]) > 36: // begins with the task's id
			results = append(results, parts[1][:36])
		default:
			audio = append(audio, key)
		}
	}
	referenced := map[string]bool{}
	for _, q := range []struct {
		query string
		of    []string
	}{
		{"SELECT audio_blob FROM tasks WHERE audio_blob IN (%s)", audio},
		{"SELECT '" + checkpointFolder + "' || id FROM tasks WHERE id IN (%s) AND phase <> 'final'", checkpoints},
		{"SELECT result_blob FROM tasks WHERE id IN (%s) AND result_blob IS NOT NULL", results},
	} {
		if len(q.of) == 0 {
			continue
		}
		var args db.Args
		list, err := db.Column[string](ctx, s.Config.DB.Read(), fmt.Sprintf(q.query, args.AddTexts(q.of)), args...)
		if err != nil {
			return nil, s.wrap("clean up", err)
		}
		for _, key := range list {
			referenced[key] = true
		}
	}
	for _, key := range keys { // all files of a task's checkpoints belong to it
		if parts := strings.SplitN(key, "/", 3); len(parts) == 3 && referenced[parts[0]+"/"+parts[1]] {
			referenced[key] = true
		}
	}
	return referenced, nil
}
