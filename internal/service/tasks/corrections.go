package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/internal/system/db"
)

// VersionError is returned for a correction of a version of the log that is not
// the current one (HTTP 409).
type VersionError struct{ Current int64 }

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the corrections have changed: version %d is current", e.Current)
}

// MaxCorrection limits the JSON form of one correction, in bytes.
const MaxCorrection = 2 << 20

// Limits on all corrections of a task, reverted ones included.
const (
	maxCorrections     = 20_000
	maxCorrectionsSize = 4 * MaxCorrection // characters of JSON
)

// Corrections returns the log of a done task's corrections. Errors wrap
// ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Owners) Corrections(ctx context.Context, account, id string) ([]corrections.Entry, error) {
	if _, _, err := s.done(ctx, account, id); err != nil {
		return nil, err
	}
	log, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, e *corrections.Entry) error {
		return row.Scan(&e.Version, &e.Author, db.ScanTime(&e.MadeAt), db.ScanJSON(&e.Change))
	}, "SELECT version, author, made_at, change FROM corrections WHERE task_id = $1 ORDER BY version", id)
	return log, s.wrap("corrections", err)
}

// Correct adds a change to the corrections of a result. version is the version
// that the change is based on. The error is a *VersionError if another version
// is current, or wraps corrections.ErrChange if the change does not fit the
// transcript, ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Owners) Correct(ctx context.Context, account, id, author string, change corrections.Change, version int64) (corrections.Entry, error) {
	entry := corrections.Entry{Author: author, MadeAt: s.now(), Change: change, Version: version + 1}
	err := change.Check()
	if err == nil {
		err = s.fits(ctx, account, id, entry)
	}
	if err != nil {
		return entry, err
	}
	text, err := json.Marshal(change)
	if err != nil {
		return entry, err
	}
	err = s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := s.lockNamed(ctx, tx, id); err != nil { // the task may be deleted concurrently
			return err
		}
		var last, count, size int64
		err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0), COUNT(*), COALESCE(SUM(LENGTH(change)), 0) FROM corrections WHERE task_id = $1", id).Scan(&last, &count, &size)
		switch {
		case err != nil:
			return err
		case version != last:
			return &VersionError{last}
		case count >= maxCorrections || size+int64(len(text)) > maxCorrectionsSize:
			return fmt.Errorf("%w: a task may have %d corrections, of %d bytes together", corrections.ErrChange, maxCorrections, maxCorrectionsSize)
		}
		return db.Do(ctx, tx, "INSERT INTO corrections (task_id, version, author, made_at, change) VALUES ($1, $2, $3, $4, $5)",
			id, entry.Version, author, db.Micros(entry.MadeAt), string(text))
	})
	return entry, s.wrap("correct", err)
}

// fits returns an error unless the change can be applied to the version that it
// is based on. The log up to a version never changes, so the check needs no
// transaction.
func (s *Owners) fits(ctx context.Context, account, id string, entry corrections.Entry) error {
	log, err := s.Corrections(ctx, account, id)
	if err != nil {
		return err
	}
	current := corrections.Version(log)
	switch {
	case entry.Version != current+1:
		return &VersionError{current}
	case entry.Op == corrections.Undo && len(corrections.Effective(log)) == 0:
		return fmt.Errorf("%w: there is nothing to undo", corrections.ErrChange)
	case entry.Op == corrections.Undo:
		return nil
	}
	r, err := s.Result(ctx, account, id)
	if err != nil {
		return err
	}
	defer r.Close()
	whole, err := r.Whole()
	if err != nil {
		return err
	}
	if err := corrections.Apply(whole, append(log, entry)); err != nil {
		return err
	}
	return entry.Fits(whole)
}

// Corrected is Result with the task's corrections, but for the names of
// speakers, which it returns.
func (s *Owners) Corrected(ctx context.Context, account, id string) (r *Result, names map[string]string, err error) {
	log, err := s.Corrections(ctx, account, id)
	if err != nil {
		return nil, nil, err
	}
	r, err = s.Result(ctx, account, id)
	if err != nil || len(log) == 0 {
		return r, nil, err
	}
	whole, err := r.Whole()
	if err == nil {
		err = corrections.Apply(whole, log)
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	r.corrected, whole.Segments = whole.Segments, nil
	r.Head = *whole
	return r, corrections.Names(log), nil
}
