package doors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/otograph/otograph/spec"
)

// Object is a JSON object.
type Object map[string]any

// Message returns an object with a type as the only message.
func Message(kind string, o Object) [][]byte {
	o["type"] = kind
	data, _ := json.Marshal(o) // texts, lists and finite numbers
	return [][]byte{data}
}

// Number reads a parameter: usual if the text is empty. An invalid text sets
// err to a *spec.OptionError.
func Number(name, text string, usual, least, most float64, err *error) float64 {
	if text == "" {
		return usual
	}
	n, wrong := strconv.ParseFloat(text, 64)
	if wrong != nil || !(n >= least && n <= most) {
		*err = &spec.OptionError{Field: name, Reason: fmt.Sprintf("must be a number from %v to %v, not %q", least, most, spec.Shorten(text))}
	}
	return n
}

// Check completes options. An error names the option's parameter; names maps
// options to parameters.
func Check(o spec.Options, names map[string]string) (spec.EffectiveOptions, error) {
	e, err := o.Effective()
	if wrong, ok := errors.AsType[*spec.OptionError](err); ok {
		wrong.Field = cmp.Or(names[wrong.Field], wrong.Field)
	}
	return e, err
}

// Speaker returns the number of a speaker; ok is false if it is not known.
func Speaker(name string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "SPEAKER_"))
	return n, err == nil
}

// LeastPause is the least pause, in seconds, that ends an utterance in
// interfaces whose clients ask by default for 10 to 100 ms, which would cut
// words.
const LeastPause = 0.3

// Turn is the first utterance without a final text. Interfaces that show one
// text at a time leave out the events of others.
type Turn int

// Of reports whether an event is the turn's. A LiveFinal begins the next one.
func (t *Turn) Of(e spec.LiveEvent) bool {
	if e.Kind == spec.LiveFinal {
		*t++
		return true
	}
	return e.Utterance == int(*t)
}

// Sketch returns the text of a LivePartial as a sentence.
func Sketch(e spec.LiveEvent) []spec.Segment {
	return []spec.Segment{{Start: e.Start, End: e.End, Text: e.Text}}
}
