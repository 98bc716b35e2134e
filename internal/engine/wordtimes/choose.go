package wordtimes

import (
	"cmp"
	"context"
	"slices"
)

// mostHeads is the maximum number of chosen heads, typical of published lists.
// usualStrain is the usual cost of durations and skipped speech per word
// (docs/measurements/word-times.md).
const mostHeads, usualStrain = 8, 0.7

// Choose finds the alignment heads of an unpublished decoder from a window with
// plenty of text: the heads that jump to a word at its audible start. Only
// heads of the last half of the layers are tried, as Whisper does without a
// list. scores returns the scores of all heads of a layer, as in Input;
// in.Scores is not used. Choose returns at most eight pairs of layer and head,
// best first, or none if no head follows the sound. If ctx ends, the error is
// its cause.
func Choose(ctx context.Context, in Input, layers int, scores func(layer int) ([][][]float32, error)) (pairs [][2]int, err error) {
	type candidate struct {
		head [2]int // layer and head
		fit  float64
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
			all = append(all, candidate{[2]int{layer, h}, fit + usualStrain*float64(len(in.Words))})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.fit, a.fit) })
	for _, c := range all[:min(len(all), mostHeads)] {
		if c.fit <= 0 || c.fit < all[0].fit/3 {
			break
		}
		pairs = append(pairs, c.head)
	}
	return pairs, nil
}
