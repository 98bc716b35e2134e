package whisper

import (
	"context"
	"fmt"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/wordtimes"
	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// alignmentHeads returns the heads that time a model's words: the model's own,
// or the published ones for its shape; nil if each window has to choose them.
func alignmentHeads(given [][2]int, h ggmlfile.Header) ([][2]int, error) {
	for _, g := range given {
		if min(g[0], g[1]) < 0 || g[0] >= int(h.TextLayers) || g[1] >= int(h.TextHeads) {
			return nil, fmt.Errorf("alignment heads: expected layers below %d and heads below %d, found %v", h.TextLayers, h.TextHeads, g)
		}
	}
	if len(given) == 0 {
		return wordtimes.Published(h), nil
	}
	return given, nil
}

// time measures when the words of a job's decided text are spoken.
func (w *worker) time(o *opened) error {
	f := o.job.plan.text()
	if f == nil || len(f.tokens) == 0 || f.degenerate() {
		return nil
	}
	in := wordtimes.Input{Samples: o.job.samples(), Speech: o.job.window.Spoken()}
	end := float64(o.job.window.Len()) / audio.SampleRate
	list, _ := sections(w.cpu, f.tokens, 0, end)
	for _, p := range passages(o.job.window, list, end) {
		for _, s := range p.words {
			in.Words = append(in.Words, wordtimes.Word{Text: s.Text, First: p.first + s.First, Last: p.first + s.Last})
		}
	}
	if len(in.Words) == 0 {
		return nil
	}
	tokens := slices.Clone(o.search.prompt[o.search.sot:])
	if last := len(tokens) - 1; tokens[last] != w.cpu.NoTimestamps {
		tokens = append(tokens, w.cpu.NoTimestamps)
	}
	in.Prefix = len(tokens)
	for _, t := range f.tokens {
		if t.id < w.cpu.EOT {
			tokens = append(tokens, t.id)
		}
	}
	tokens = append(tokens, w.cpu.EOT)
	scores := func(heads [][2]int) ([][][]float32, error) {
		return w.decoder.Attention(o.window, tokens, heads, in.Positions(), w.stop)
	}
	heads := w.cpu.heads
	var err error
	if heads == nil {
		if heads, err = w.cpu.choose(w.slot.ctx, in, scores); err != nil {
			return err
		}
	}
	if len(heads) == 0 {
		return nil // no head follows the sound
	}
	if in.Scores, err = scores(heads); err != nil {
		return err
	}
	f.times = wordtimes.Times(in)
	for i, t := range f.times {
		// where two pieces meet, a word begins in the later one
		f.times[i] = wordtimes.Time{Start: o.job.window.Time(t.Start + 0.001), End: o.job.window.Time(t.End)}
	}
	return nil
}

// choose finds the alignment heads of a model of unknown shape.
func (c *cpu) choose(ctx context.Context, in wordtimes.Input, scores func(heads [][2]int) ([][][]float32, error)) ([][2]int, error) {
	h := c.model.Header()
	return wordtimes.Choose(ctx, in, int(h.TextLayers), func(layer int) ([][][]float32, error) {
		all := make([][2]int, h.TextHeads)
		for i := range all {
			all[i] = [2]int{layer, i}
		}
		return scores(all)
	})
}
