package wordtimes

import (
	"cmp"
	"context"
	"slices"
)

// mostHeads is the maximum number of chosen heads, typical of published lists.
const mostHeads = 8

// Choose finds the alignment heads of an unpublished decoder from a window with
// plenty of text: the heads that jump to a word at its audible start. Only
// heads of the last half of the layers are tried, as Whisper does without a
// list. scores returns the scores of all heads of a layer, as in Input;
// in.Scores is not used. Choose returns at most eight heads, best first, or
// none if no head follows the sound; if ctx ends, it returns its cause.
func Choose(ctx context.Context, in Input, layers int, scores func(layer int) ([][][]float32, error)) ([]Head, error) {
	type candidate struct {
		Head
		fit float64
	}
	s := newSharpener(in)
	if s == nil {
		return nil, nil
	}
	var all []candidate
	for layer := layers / 2; layer < layers; layer++ {
		heads, err := scores(layer)
		if err != nil {
			return nil, err
		}
		for h := range heads {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			s.place(warp(attention(heads[h:h+1], in.Prefix, positions(in, heads))))
			s.score()
			fit, _ := s.best(len(in.Words)-1, len(s.clock.frames))
			all = append(all, candidate{Head{layer, h}, fit})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.fit, a.fit) })
	var heads []Head
	for _, c := range all[:min(len(all), mostHeads)] {
		if c.fit <= 0 || c.fit < all[0].fit/3 {
			break
		}
		heads = append(heads, c.Head)
	}
	return heads, nil
}
