package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
)

// CollectConfig bounds what a collection may delete; zero values are the
// service's rules, negative durations mean none.
type CollectConfig struct {
	MinAge   time.Duration // of a file that is looked at: its row may be about to be written; default 24 h
	Marked   time.Duration // how long a file must have been marked before it is deleted; default 7 days
	MaxFiles int           // deleted in a pass; default 1,000
	MaxShare float64       // share of all files that one pass may delete, at least one file; default 0.01
}

// Collected is the result of a pass of Collect.
type Collected struct {
	Files   int // of the service
	Orphans int // files that nothing points at, deleted ones included
	Marked  int // orphans found for the first time
	Deleted int
}

// ours matches the keys that the service gives to its files: all begin with the
// id of a file, a task or a worker, or with a probe's random text. Unfinished
// files of a folder store have a suffix.
var ours = regexp.MustCompile(`^((audio|checkpoints|results)/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}([./-]|$)|probe/[a-z2-7]{26}(\.|$))`)

// collectBatch is how many files are compared with the database at a time.
const collectBatch = 500

// Collect compares the files of the service with the database. Files that
// nothing points at are marked; those marked by an earlier pass for long enough
// are deleted, within the limits of c. Each deletion is logged. Only files under
// blob.Prefixes and blob.ProbePrefix whose names the service gives are ever
// looked at. A store that belongs to another database, because the database was
// exchanged under a running server, is refused with blob.ErrForeign.
func (s *Service) Collect(ctx context.Context, c CollectConfig) (Collected, error) {
	setDefault(&c.MinAge, 24*time.Hour)
	setDefault(&c.Marked, 7*24*time.Hour)
	setDefault(&c.MaxFiles, 1000)
	setDefault(&c.MaxShare, 0.01)
	p := &collection{service: s, config: c, begun: s.now()}
	if err := s.ownsFiles(ctx); err != nil {
		return p.found, err
	}
	for _, prefix := range slices.Concat(blob.Prefixes, []string{blob.ProbePrefix}) {
		err := s.blobs.List(ctx, prefix, func(o blob.Object) error { return p.file(ctx, o) })
		if err != nil {
			return p.found, err
		}
	}
	if err := p.compare(ctx); err != nil {
		return p.found, err
	}
	if err := p.forget(ctx); err != nil {
		return p.found, err
	}
	return p.found, p.delete(ctx)
}

// ownsFiles returns blob.ErrForeign if the file store has the identity of another
// database.
func (s *Service) ownsFiles(ctx context.Context) error {
	id, err := s.db.Identity(ctx)
	if err != nil {
		return err
	}
	found, err := s.blobs.Identity(ctx)
	switch {
	case errors.Is(err, blob.ErrNotFound): // nobody claimed it
		return nil
	case err != nil:
		return err
	case found.Database != id.ID:
		return fmt.Errorf("collect: %w: %s, this one is %s", blob.ErrForeign, found.Database, id.ID)
	}
	return nil
}

// collection is one pass.
type collection struct {
	service *Service
	config  CollectConfig
	begun   time.Time
	batch   []string // files that are not compared yet
	due     []string // orphans that may be deleted
	found   Collected
}

func (p *collection) file(ctx context.Context, o blob.Object) error {
	if !ours.MatchString(o.Key) {
		return nil
	}
	p.found.Files++
	if o.ModTime.After(p.begun.Add(-p.config.MinAge)) {
		return nil
	}
	if p.batch = append(p.batch, o.Key); len(p.batch) < collectBatch {
		return nil
	}
	return p.compare(ctx)
}

// compare marks those files of the batch that nothing points at, and takes the
// mark from the others.
func (p *collection) compare(ctx context.Context) error {
	s := p.service
	kept, err := s.Referenced(ctx, p.batch)
	if err != nil {
		return err
	}
	marked, due := 0, []string(nil)
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		marked, due = 0, nil
		for _, key := range p.batch {
			if kept[key] {
				if _, err := tx.ExecContext(ctx, "DELETE FROM orphans WHERE key = $1", key); err != nil {
					return err
				}
				continue
			}
			var since int64
			now := db.Micros(p.begun)
			if err := tx.QueryRowContext(ctx, `INSERT INTO orphans (key, marked_at, seen_at) VALUES ($1, $2, $2)
				ON CONFLICT (key) DO UPDATE SET seen_at = excluded.seen_at RETURNING marked_at`, key, now).Scan(&since); err != nil {
				return err
			}
			switch {
			case since == now:
				marked++
			case !db.Time(since).After(p.begun.Add(-p.config.Marked)):
				due = append(due, key)
			}
		}
		return nil
	})
	if err != nil {
		return s.wrap("collect", err)
	}
	for _, key := range p.batch {
		if !kept[key] {
			p.found.Orphans++
		}
	}
	p.found.Marked += marked
	p.due = append(p.due, due[:min(len(due), max(0, p.config.MaxFiles-len(p.due)))]...)
	p.batch = p.batch[:0]
	return nil
}

// forget drops the marks of files that are gone.
func (p *collection) forget(ctx context.Context) error {
	return p.service.wrap("collect", p.service.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM orphans WHERE seen_at < $1", db.Micros(p.begun))
		return err
	}))
}

// delete deletes the orphans that are due, within the limits.
func (p *collection) delete(ctx context.Context) error {
	s := p.service
	limit := min(p.config.MaxFiles, max(1, int(float64(p.found.Files)*p.config.MaxShare)))
	if len(p.due) > limit {
		s.log.WarnContext(ctx, "more orphaned files than one pass deletes", "orphans", len(p.due), "limit", limit)
		p.due = p.due[:limit]
	}
	var failed error
	for _, key := range p.due {
		kept, err := s.Referenced(ctx, []string{key}) // a row may have come in the meantime
		if err != nil {
			return errors.Join(failed, err)
		}
		if kept[key] {
			continue
		}
		if err := s.blobs.Delete(ctx, key); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		p.found.Deleted++
		s.log.InfoContext(ctx, "orphaned file deleted", "key", key)
		err = s.db.Write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM orphans WHERE key = $1", key)
			return err
		})
		failed = errors.Join(failed, s.wrap("collect", err))
	}
	return failed
}
