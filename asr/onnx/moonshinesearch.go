package onnx

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// line is an unfinished text of a search: its last token and those before.
type line struct {
	sound  int
	before *line // nil for the beginning
	row    int   // in the cache
	emission
	attention [][]float32 // attention scores at the step that wrote the token, by head
	sum       float64     // log probability
	tokens    int
	standing
}

// score is the mean logarithm of a finished text's probability, so that long
// texts compete with short ones.
func (l *line) score(f *fusion) float64 {
	return (l.sum + f.finish(l.standing)) / float64(max(l.tokens, 1))
}

// write finds the texts of sounds: greedily, or with a beam if there are
// hotwords or a language model and the beam size is above 1, as transducers do.
// A text that loops without end, until the limit, is written again without the
// loop: what follows it in the sound has another text.
func (n *moonshine) write(ctx context.Context, sounds []encodedWindow, req request) ([]hypothesis, error) {
	f, width := &req.fusion, 1
	if !f.none() {
		width = max(req.beam, 1)
	}
	cache, err := n.newCache(sounds, width, req.times && req.draft == nil)
	if err != nil {
		return nil, err
	}
	hyps := make([]hypothesis, len(sounds))
	finished := make([][]*line, len(sounds))
	live := make([]*line, len(sounds))
	for i := range live {
		live[i] = &line{sound: i, row: i, emission: emission{id: n.begin}, standing: f.begin()}
	}
	for len(live) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tokens := make([]int64, len(live))
		for i, l := range live {
			tokens[i] = int64(l.id)
		}
		scores, err := cache.step(tokens)
		if err != nil {
			return nil, err
		}
		next := make([][]*line, len(sounds))
		for row, l := range live {
			hyps[l.sound].steps++
			l.row = row
			next[l.sound] = append(next[l.sound], n.continued(l, scores[row*n.columns:][:n.columns], cache.attention(row), f, width, req.unlooped)...)
		}
		live = live[:0]
		var from []int
		for i, list := range next {
			slices.SortStableFunc(list, func(a, b *line) int { return cmp.Compare(b.sum+b.bonus, a.sum+a.bonus) })
			for _, l := range list[:min(len(list), width)] {
				if l.id == n.end || l.tokens >= sounds[i].most {
					finished[i] = append(finished[i], l)
				}
			}
			if n.settled(list, finished[i], f, width) {
				continue
			}
			for _, l := range list[:min(len(list), width)] {
				if l.id != n.end && l.tokens < sounds[i].most {
					live, from = append(live, l), append(from, l.row)
				}
			}
		}
		if len(live) > 0 {
			cache.keep(from)
		}
	}
	unlooped := req
	unlooped.unlooped = true
	for i, list := range finished {
		best := slices.MaxFunc(list, func(a, b *line) int { return cmp.Compare(a.score(f), b.score(f)) })
		if best.id == n.end || req.unlooped || !best.loops() {
			n.read(&hyps[i], best, float64(sounds[i].frames*n.grid.stride)/audio.SampleRate)
			continue
		}
		again, err := n.write(ctx, sounds[i:i+1], unlooped)
		if err != nil {
			return nil, err
		}
		again[0].steps += hyps[i].steps
		hyps[i] = again[0]
	}
	return hyps, nil
}

// loops reports whether the text ends in a loop.
func (l *line) loops() bool {
	var latest []int
	for ; l.before != nil && len(latest) < decode.LoopReach; l = l.before {
		latest = append(latest, l.id)
	}
	return decode.Looping(latest) > 0
}

// settled reports whether the search for a text ends: enough texts are
// finished, and the likeliest unfinished one is no better than the best.
func (n *moonshine) settled(unfinished, finished []*line, f *fusion, width int) bool {
	if len(finished) < width {
		return false
	}
	best := slices.MaxFunc(finished, func(a, b *line) int { return cmp.Compare(a.score(f), b.score(f)) })
	for _, l := range unfinished {
		if l.id != n.end {
			return (l.sum+l.bonus)/float64(l.tokens) <= best.score(f)
		}
	}
	return true
}

// continued returns the likeliest continuations of a line. With unlooped, the
// tokens that would end the text in a loop are skipped until the likeliest other one.
func (n *moonshine) continued(l *line, scores []float32, attention [][]float32, f *fusion, width int, unlooped bool) (list []*line) {
	norm := logSumNear(scores)
	likeliest := argmax(scores)
	for unlooped && (&line{before: l, emission: emission{id: likeliest}}).loops() {
		scores[likeliest] = float32(math.Inf(-1))
		likeliest = argmax(scores)
	}
	ids := []int{likeliest}
	if width > 1 || !f.none() {
		if all := candidates(nil, scores, norm, -1); len(all) > 0 {
			ids = all
		}
	}
	silent := l.blank
	if l.before == nil {
		silent = exp(min(float64(scores[n.end])-norm, 0))
	}
	for _, id := range ids {
		next := &line{
			sound: l.sound, before: l, row: l.row, attention: attention, tokens: l.tokens + 1, standing: l.standing,
			emission: emission{id: id, logProb: min(float64(scores[id])-norm, 0), blank: silent},
		}
		if next.sum = l.sum + next.logProb; id != n.end {
			next.standing = f.step(l.standing, id, false)
		}
		list = append(list, next)
	}
	return list
}

// read fills a hypothesis from the last token of its text. A window without
// text has no tokens. All tokens of a window have the same no-speech
// probability: the probability that the text is empty.
func (n *moonshine) read(h *hypothesis, last *line, seconds float64) {
	h.unbounded, h.grid = true, n.grid
	for l := last; l.before != nil; l = l.before {
		if l.attention != nil {
			h.attention = append(h.attention, l.attention)
		}
		if l.id != n.end {
			l.end = seconds
			h.emissions = append(h.emissions, l.emission)
		}
	}
	slices.Reverse(h.emissions)
	slices.Reverse(h.attention)
}

// logSumNear returns ln Σ e^x of many numbers without the terms that together
// add less than a thousandth.
func logSumNear(x []float32) float64 {
	top := x[argmax(x)]
	floor := top - float32(math.Log(float64(len(x)))+7)
	var s float64
	for _, v := range x {
		if v > floor {
			s += math.Exp(float64(v - top))
		}
	}
	return float64(top) + math.Log(s)
}
