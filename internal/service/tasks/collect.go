package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// CollectConfig limits the deletions of a collection. Zero values select the
// service's defaults; a negative duration disables that limit.
type CollectConfig struct {
	MinAge   time.Duration // younger files are skipped, because their row may not be written yet; default 24 h
	Marked   time.Duration // how long a file must have been marked before it is deleted; default 7 days
	MaxFiles int           // most files that one pass deletes; default 1,000
	MaxShare float64       // share of all files that one pass may delete, at least one file; default 0.01
}

// Collected is the result of a pass of Collect.
type Collected struct {
	Files   int // of the service
	Orphans int // files without a row, including deleted files
	Marked  int // orphans marked for the first time
	Deleted int
}

// ours matches the keys of the service's files. They begin with the id of a
// file, a task or a worker, or with the random text of a probe. Unfinished
// files of a folder store have a suffix.
var ours = regexp.MustCompile(`^((audio|checkpoints|results)/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}([./-]|$)|probe/[a-z2-7]{26}(\.|$))`)

const collectBatch = 500

// Collect compares the service's files with the database. It marks files
// without a row, and deletes files that an earlier pass marked long enough ago,
// within the limits of c. It logs each deletion. It only considers files under
// blob.Prefixes and blob.ProbePrefix whose names have the service's form. If
// the store belongs to another database, because the database was exchanged
// under a running server, it returns blob.ErrForeign.
func (s *Operators) Collect(ctx context.Context, c CollectConfig) (Collected, error) {
	c.MinAge = cmp.Or(c.MinAge, 24*time.Hour)
	c.Marked = cmp.Or(c.Marked, 7*24*time.Hour)
	c.MaxFiles = cmp.Or(c.MaxFiles, 1000)
	c.MaxShare = cmp.Or(c.MaxShare, 0.01)
	p := &collection{service: s.core, config: c, begun: s.now()}
	if err := s.ownsFiles(ctx); err != nil {
		return p.counts, err
	}
	for _, prefix := range slices.Concat(blob.Prefixes, []string{blob.ProbePrefix}) {
		err := s.Config.Blobs.List(ctx, prefix, func(o blob.Object) error { return p.file(ctx, o) })
		if err != nil {
			return p.counts, err
		}
	}
	if err := p.compare(ctx); err != nil {
		return p.counts, err
	}
	// Marks of files that no longer exist are dropped.
	if _, err := s.Config.DB.Exec(ctx, "DELETE FROM orphans WHERE seen_at < $1", db.Micros(p.begun)); err != nil {
		return p.counts, s.wrap("collect", err)
	}
	err := p.delete(ctx)
	return p.counts, err
}

// ownsFiles returns blob.ErrForeign if another database has the file store.
func (s *core) ownsFiles(ctx context.Context) error {
	id, err := s.Config.DB.Identity(ctx)
	if err != nil {
		return err
	}
	owner, err := s.Config.Blobs.Identity(ctx)
	if err == nil && owner.Database != id.ID {
		return fmt.Errorf("collect: %w: %s, this one is %s", blob.ErrForeign, owner.Database, id.ID)
	}
	if errors.Is(err, blob.ErrNotFound) { // nobody claimed it
		return nil
	}
	return err
}

type collection struct {
	service *core
	config  CollectConfig
	begun   time.Time
	batch   []string // files not yet compared
	due     []string // orphans that may be deleted
	counts  Collected
}

func (p *collection) file(ctx context.Context, o blob.Object) error {
	if !ours.MatchString(o.Key) {
		return nil
	}
	p.counts.Files++
	if o.ModTime.After(p.begun.Add(-p.config.MinAge)) {
		return nil
	}
	if p.batch = append(p.batch, o.Key); len(p.batch) < collectBatch {
		return nil
	}
	return p.compare(ctx)
}

// compare marks the files of the batch without a row, and unmarks the others.
// It reads all marks first, and writes only changed marks.
func (p *collection) compare(ctx context.Context) error {
	s := p.service
	if len(p.batch) == 0 {
		return nil
	}
	referenced, err := s.Referenced(ctx, p.batch)
	if err != nil {
		return err
	}
	var args db.Args
	query := "SELECT key, marked_at FROM orphans WHERE key IN (" + args.AddTexts(p.batch) + ")"
	marks, err := db.Map(ctx, s.Config.DB.Read(), func(since *time.Time) any { return db.ScanTime(since) }, query, args...)
	if err != nil {
		return s.wrap("collect", err)
	}
	var orphans, unmarked []string
	for _, key := range p.batch {
		since, marked := marks[key]
		switch {
		case !referenced[key]:
			orphans = append(orphans, key)
			if !marked {
				p.counts.Marked++
			} else if !since.After(p.begun.Add(-p.config.Marked)) && len(p.due) < p.config.MaxFiles {
				p.due = append(p.due, key)
			}
		case marked:
			unmarked = append(unmarked, key)
		}
	}
	p.counts.Orphans += len(orphans)
	p.batch = p.batch[:0]
	return s.wrap("collect", errors.Join(s.forgetKeys(ctx, "orphans", unmarked), p.mark(ctx, orphans)))
}

// mark records that the files have no row.
func (p *collection) mark(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	args := db.Args{db.Micros(p.begun)}
	rows := make([]string, len(keys))
	for i, key := range keys {
		rows[i] = "(" + args.Add(key) + ", $1, $1)"
	}
	_, err := p.service.Config.DB.Exec(ctx, "INSERT INTO orphans (key, marked_at, seen_at) VALUES "+strings.Join(rows, ", ")+" ON CONFLICT (key) DO UPDATE SET seen_at = excluded.seen_at", args...)
	return err
}

func (p *collection) delete(ctx context.Context) error {
	s := p.service
	limit := min(p.config.MaxFiles, max(1, int(float64(p.counts.Files)*p.config.MaxShare)))
	if len(p.due) > limit {
		s.Config.Logger.WarnContext(ctx, "more orphaned files than one pass deletes", "orphans", len(p.due), "limit", limit)
		p.due = p.due[:limit]
	}
	var failed error
	for _, key := range p.due {
		referenced, err := s.Referenced(ctx, []string{key}) // a row may have been added in the meantime
		if err != nil {
			return errors.Join(failed, err)
		}
		if referenced[key] {
			continue
		}
		if err := s.Config.Blobs.Delete(ctx, key); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		p.counts.Deleted++
		s.Config.Logger.InfoContext(ctx, "orphaned file deleted", "key", key)
		failed = errors.Join(failed, s.wrap("collect", s.forgetKeys(ctx, "orphans", []string{key})))
	}
	return failed
}
