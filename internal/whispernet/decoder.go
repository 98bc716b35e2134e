package whispernet

import (
	"errors"
	"sync/atomic"
)

// ErrStopped is returned by computations that were told to stop.
var ErrStopped = errors.New("whispernet: stopped")

// Stop tells running computations to end. The zero value is ready.
type Stop struct{ flag atomic.Bool }

// Now ends every computation that was given the Stop, within a few milliseconds.
func (s *Stop) Now() { s.flag.Store(true) }

// Stopped reports whether Now was called.
func (s *Stop) Stopped() bool { return s != nil && s.flag.Load() }

// Column is one token of one decoder pass.
type Column struct {
	Window *Window
	// Row is where the column's keys and values are kept at its position; columns of the
	// same window and position have different rows.
	Row int
	// Position is the place of the token in its text, from 0.
	Position int
	Token    int32
	// Path holds, for each position before Position, the row that the column's text had
	// there: beams that share a past share its rows, so that nothing is ever copied. nil
	// is row 0 everywhere.
	Path []uint8
	// Logits receives the logits of the next token, one for each token of the vocabulary;
	// nil where they are not wanted (all but the last token of a prompt).
	Logits []float32
}

// Decoder holds the buffers of decoder passes. One goroutine at a time uses it.
type Decoder struct{}

// NewDecoder returns a decoder with the given number of threads.
func (m *Model) NewDecoder(threads int) *Decoder { return nil }

// Free gives the buffers back.
func (d *Decoder) Free() {}

// Step runs one decoder pass over columns of any windows, at any positions. Within a
// pass a column attends to earlier positions of the same pass too: a prompt is a pass
// with a column for each of its tokens, all in row 0. The results for one column do not
// depend on which others share the pass.
func (d *Decoder) Step(columns []Column, stop *Stop) error { return nil }

// Head is an attention head of the decoder, counted from 0.
type Head struct{ Layer, Head int }

// Attention runs the tokens of a whole text (with the tokens before it: SOT, language,
// task, no timestamps) through the decoder at once and returns the raw scores (before
// the softmax) of the given cross-attention heads: [head][token][encoder position, 1500
// of 20 ms]. It also returns the log probability of each token after the first, given
// those before it, if probabilities is true. The window's cache is overwritten.
func (d *Decoder) Attention(w *Window, tokens []int32, heads []Head, stop *Stop) (scores [][][]float32, err error) {
	return nil, nil
}
