package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Annotations are the owner's notes on a result: speakers' names and corrected
// texts.
type Annotations struct {
	// Version is 0 before the first change and increases with every change.
	Version int64
	// Speakers maps a result's speakers (SPEAKER_0) to names. Texts maps
	// segment numbers to corrected texts.
	Speakers, Texts map[string]string
	// UpdatedAt is the time of the last change; zero for version 0.
	UpdatedAt time.Time
}

// AnnotationPatch changes annotations: a nil value deletes an entry, any other
// value sets it. Entries that the patch does not name stay.
type AnnotationPatch struct{ Speakers, Texts map[string]*string }

// Errors of annotations.
var (
	// ErrAnnotation is returned for an invalid patch (HTTP 400).
	ErrAnnotation = errors.New("annotation not accepted")
	// ErrVersion is returned when the annotations have changed in the meantime
	// (HTTP 412).
	ErrVersion = errors.New("annotations have changed")
)

// MaxAnnotations limits all names and texts of one task, and the body of one
// patch, in bytes.
const MaxAnnotations = 2 << 20

// Limits of annotations, in characters.
const (
	maxAnnotationKey = 64
	maxSpeakerName   = 200
	maxAnnotatedText = 10_000
)

type annotationContent struct {
	Speakers map[string]string `json:"speakers"`
	Texts    map[string]string `json:"texts"`
}

// Annotations returns the owner's annotations of a result. Errors wrap
// ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Owners) Annotations(ctx context.Context, account, id string) (Annotations, error) {
	if _, _, err := s.done(ctx, account, id); err != nil {
		return Annotations{}, err
	}
	a, err := readAnnotations(s.Config.DB.Read().QueryRowContext(ctx, selectAnnotations, id))
	return a, s.wrap("annotations", err)
}

// Annotate changes the annotations of a result. match, if not nil, is the
// version that the caller's change is based on. The error wraps ErrVersion if
// that is no longer the current version, ErrAnnotation if the patch is invalid,
// or ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Owners) Annotate(ctx context.Context, account, id string, patch AnnotationPatch, match *int64) (Annotations, error) {
	if err := patch.check(); err != nil {
		return Annotations{}, err
	}
	if _, _, err := s.done(ctx, account, id); err != nil {
		return Annotations{}, err
	}
	var a Annotations
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := s.lockNamed(ctx, tx, id); err != nil { // the task may be deleted concurrently
			return err
		}
		var err error
		if a, err = readAnnotations(tx.QueryRowContext(ctx, selectAnnotations, id)); err != nil {
			return err
		}
		if match != nil && *match != a.Version {
			return fmt.Errorf("%w: version %d is current, not %d", ErrVersion, a.Version, *match)
		}
		merge(a.Speakers, patch.Speakers)
		merge(a.Texts, patch.Texts)
		content, err := json.Marshal(annotationContent{a.Speakers, a.Texts})
		if err != nil {
			return err
		}
		if len(content) > MaxAnnotations {
			return fmt.Errorf("%w: the names and texts of a task may have %d bytes together", ErrAnnotation, MaxAnnotations)
		}
		a.Version++
		a.UpdatedAt = s.now()
		_, err = tx.ExecContext(ctx, `INSERT INTO annotations (task_id, version, content, updated_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (task_id) DO UPDATE SET version = excluded.version, content = excluded.content, updated_at = excluded.updated_at`,
			id, a.Version, string(content), db.Micros(a.UpdatedAt))
		return err
	})
	if err != nil {
		return Annotations{}, s.wrap("annotate", err)
	}
	return a, nil
}

const selectAnnotations = "SELECT version, content, updated_at FROM annotations WHERE task_id = $1"

func readAnnotations(row db.Row) (Annotations, error) {
	a := Annotations{Speakers: map[string]string{}, Texts: map[string]string{}}
	_, err := db.Found(row.Scan(&a.Version, db.ScanJSON(&annotationContent{a.Speakers, a.Texts}), db.ScanTime(&a.UpdatedAt)))
	return a, err
}

func merge(into map[string]string, patch map[string]*string) {
	for key, value := range patch {
		if value == nil {
			delete(into, key)
		} else {
			into[key] = *value
		}
	}
}

func (p AnnotationPatch) check() error {
	for key, value := range p.Speakers {
		if key == "" || utf8.RuneCountInString(key) > maxAnnotationKey {
			return fmt.Errorf("%w: speakers: the name %q has no place in a result", ErrAnnotation, spec.Shorten(key))
		}
		if value != nil && (strings.TrimSpace(*value) == "" || utf8.RuneCountInString(*value) > maxSpeakerName) {
			return fmt.Errorf("%w: speakers.%s: 1 to %d characters, or null", ErrAnnotation, spec.Shorten(key), maxSpeakerName)
		}
	}
	for key, value := range p.Texts {
		if n, err := strconv.Atoi(key); err != nil || n < 0 || strconv.Itoa(n) != key {
			return fmt.Errorf("%w: texts: %q is not the id of a segment", ErrAnnotation, spec.Shorten(key))
		}
		if value != nil && utf8.RuneCountInString(*value) > maxAnnotatedText {
			return fmt.Errorf("%w: texts.%s: at most %d characters, or null", ErrAnnotation, key, maxAnnotatedText)
		}
	}
	return nil
}

// Apply enters names and texts into a result. A corrected segment keeps the
// words that its new text still contains, in their order.
func (a Annotations) Apply(r *spec.Result) {
	name := func(speaker *string) {
		if called, ok := a.Speakers[*speaker]; ok {
			*speaker = called
		}
	}
	for i := range r.Segments {
		segment := &r.Segments[i]
		name(&segment.Speaker)
		text, ok := a.Texts[strconv.Itoa(segment.ID)]
		if !ok || text == segment.Text {
			continue
		}
		segment.Text = text
		words, rest := segment.Words[:0], text
		for _, w := range segment.Words {
			word := strings.TrimSpace(w.Word)
			if _, after, found := strings.Cut(rest, word); found && word != "" {
				words, rest = append(words, w), after
			}
		}
		segment.Words = words
	}
	for i := range r.DiarizeSegments {
		name(&r.DiarizeSegments[i].Speaker)
	}
}
