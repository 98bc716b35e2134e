// Package corrections changes transcripts by hand: it assigns sentences to
// speakers, splits and joins them, and changes their texts. A task's changes
// are a log; the corrected result is the original with the log applied to it.
package corrections

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// ErrChange is returned for a change that is malformed or does not fit the
// transcript.
var ErrChange = errors.New("correction not accepted")

// Op names a kind of change.
type Op string

// The kinds of changes.
const (
	Annotate Op = "annotate" // sets names of speakers and texts of sentences
	Assign   Op = "assign"   // gives a sentence to a speaker
	Split    Op = "split"    // cuts a sentence in two
	Join     Op = "join"     // joins a sentence and the next one
	Undo     Op = "undo"     // reverts the last change that is not reverted
)

// Change is one change of a transcript.
type Change struct {
	Op Op `json:"op"`
	// Segment is the id of the sentence that Assign, Split and Join change.
	Segment *int `json:"segment,omitempty"`
	// Speaker is the speaker whom Assign gives the sentence.
	Speaker string `json:"speaker,omitempty"`
	// At is the number of characters (code points) of the sentence's text that
	// stay before the cut of Split.
	At int `json:"at,omitempty"`
	// Speakers maps a result's speakers (SPEAKER_0) to names, and Texts
	// segment ids to texts, for Annotate. A nil value removes an entry.
	Speakers map[string]*string `json:"speakers,omitempty"`
	Texts    map[string]*string `json:"texts,omitempty"`
}

// Entry is a change in a task's log.
type Entry struct {
	// Version is 1 for a task's first change and increases with every change.
	Version int64     `json:"version"`
	Author  string    `json:"author"`
	MadeAt  time.Time `json:"made_at"`
	Change
}

// Limits of a change, in characters.
const (
	maxSpeaker = 64
	maxName    = 200
	maxText    = 10_000
)

// Check returns an error that wraps ErrChange if the change is malformed.
func (c Change) Check() error {
	own := Change{Op: c.Op, Segment: c.Segment} // the fields of this kind of change
	switch c.Op {
	case Annotate:
		own.Segment, own.Speakers, own.Texts = nil, c.Speakers, c.Texts
	case Assign:
		own.Speaker = c.Speaker
	case Split:
		own.At = c.At
	case Join:
	case Undo:
		own.Segment = nil
	default:
		return refuse("op: %q; expected annotate, assign, split, join or undo", spec.Shorten(string(c.Op)))
	}
	switch {
	case !reflect.DeepEqual(c, own):
		return refuse("op: %s has no such fields: annotate has speakers and texts, assign segment and speaker, split segment and at, join segment", c.Op)
	case c.Op == Annotate:
		return c.checkEntries()
	case c.Op != Undo && c.Segment == nil:
		return refuse("segment: is required: the id of a segment")
	case c.Op == Assign && (!spec.Printable(c.Speaker, maxSpeaker) || strings.TrimSpace(c.Speaker) != c.Speaker):
		return refuse("speaker: expected 1 to %d printable characters without spaces around them", maxSpeaker)
	case c.Op == Split && c.At <= 0:
		return refuse("at: expected the number of characters before the cut, found %d", c.At)
	}
	return nil
}

func (c Change) checkEntries() error {
	for key, value := range c.Speakers {
		if key == "" || utf8.RuneCountInString(key) > maxSpeaker {
			return refuse("speakers: the name %q has no place in a result", spec.Shorten(key))
		}
		if value != nil && !spec.Printable(*value, maxName) {
			return refuse("speakers.%s: 1 to %d printable characters, or null", spec.Shorten(key), maxName)
		}
	}
	for key, value := range c.Texts {
		if n, err := strconv.Atoi(key); err != nil || n < 0 || strconv.Itoa(n) != key {
			return refuse("texts: %q is not the id of a segment", spec.Shorten(key))
		}
		if value != nil && utf8.RuneCountInString(*value) > maxText {
			return refuse("texts.%s: at most %d characters, or null", key, maxText)
		}
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrChange}, args...)...)
}

// Version returns the version of the last change, 0 for an empty log.
func Version(log []Entry) int64 {
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Version
}

// Effective returns the changes of a log that are in effect, in order: neither
// reverted changes nor the reverting ones.
func Effective(log []Entry) (entries []Entry) {
	for _, e := range log {
		if e.Op != Undo {
			entries = append(entries, e)
		} else if n := len(entries); n > 0 {
			entries = entries[:n-1]
		}
	}
	return slices.Clip(entries)
}

// Names returns the names of speakers that a log sets.
func Names(log []Entry) map[string]string {
	names := map[string]string{}
	for _, e := range Effective(log) {
		for speaker, name := range e.Speakers {
			if name == nil {
				delete(names, speaker)
			} else {
				names[speaker] = *name
			}
		}
	}
	return names
}
