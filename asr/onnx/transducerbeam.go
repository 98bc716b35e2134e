package onnx

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// spoken is a node in the tree of texts of a transducer's beam search: its
// token follows its parent's.
type spoken struct {
	id        int
	children  []*spoken
	predictor predictor // behind the text
	standing
}

// child returns the text with another token, once the predictor has scored.
func (s *spoken) child(id int, f *fusion) *spoken {
	for _, c := range s.children {
		if c.id == id {
			return c
		}
	}
	c := &spoken{id: id, predictor: s.predictor.after(id), standing: f.step(s.standing, id, false)}
	s.children = append(s.children, c)
	return c
}

// trace is a linked list of a path's tokens, the last first.
type trace struct {
	before *trace
	emission
}

// alignment holds the paths that have written a text by a given frame: sum is
// the logarithm of the sum of their probabilities. best is the likeliest
// path's, and trace holds its tokens.
type alignment struct {
	text      *spoken
	sum, best float64
	trace     *trace
}

// score returns the key by which the beam is ordered.
func (a alignment) score() float64 { return a.sum + a.text.bonus }

// merge adds a to list, or a's probability to an entry with the same text.
func merge(list []alignment, a alignment) []alignment {
	for i := range list {
		x := &list[i]
		if x.text != a.text {
			continue
		}
		if x.sum = logAdd(x.sum, a.sum); a.best > x.best {
			x.best, x.trace = a.best, a.trace
		}
		return list
	}
	return append(list, a)
}

// prune keeps the best width alignments.
func prune(list []alignment, width int) []alignment {
	slices.SortStableFunc(list, func(a, b alignment) int { return cmp.Compare(b.score(), a.score()) })
	return list[:min(len(list), width)]
}

// stay is a duration in frames with the logarithm of its probability.
type stay struct {
	frames  int
	logProb float64
}

// stays returns the durations of a token and of a blank: a joint output wider
// than the vocabulary scores durations of 0, 1, 2 … frames (TDT). RNN-T stays
// on the frame after a token and leaves it after a blank.
func stays(scores []float32) (token, blank []stay) {
	if len(scores) == 0 {
		return []stay{{0, 0}}, []stay{{1, 0}}
	}
	norm := logSum(scores)
	for frames, x := range scores {
		if p := float64(x) - norm; p >= beamFloor {
			token = append(token, stay{frames, p})
			blank = append(blank, stay{max(frames, 1), p})
		}
	}
	return token, blank
}

// beam searches with width texts (A. Graves 2012, Sequence transduction with
// recurrent neural networks; frame by frame, equal texts are merged) and the
// bonus of hotwords and language model (V. Bataev and others 2025, NGPU-LM).
// The blank earns no bonus. If the width drops nothing, the result is the text
// with the highest sum of its alignments' probabilities, bonus included.
func (s *searcher) beam(ctx context.Context, frames encoded, f fusion, width int) (out []emission, steps int, err error) {
	ahead := make([][]alignment, frames.n+1) // alignments by the frame they have reached
	ahead[0] = []alignment{{text: &spoken{id: -1, predictor: s.begin(), standing: f.begin()}}}
	var order []int
	for at := range frames.n {
		level := prune(ahead[at], width)
		ahead[at] = nil
		frame := frames.frame(at)
		for here := 1; len(level) > 0; here++ { // tokens on this frame
			var next []alignment
			for _, a := range level {
				scores, durations, err := s.score(ctx, a.text.predictor, frame)
				if err != nil {
					return nil, 0, err
				}
				steps++
				norm := logSum(scores)
				logProb := func(id int) float64 { return min(float64(scores[id])-norm, 0) }
				tokenStays, blankStays := stays(durations)
				for _, stay := range blankStays {
					to, p := min(at+stay.frames, frames.n), logProb(s.blank)+stay.logProb
					ahead[to] = merge(ahead[to], alignment{a.text, a.sum + p, a.best + p, a.trace})
				}
				order = candidates(order[:0], scores, norm, s.blank)
				for _, id := range order {
					text := a.text.child(id, &f)
					for _, stay := range tokenStays {
						p := logProb(id) + stay.logProb
						longer := alignment{text, a.sum + p, a.best + p, &trace{a.trace, s.emission(at, stay.frames, frames.n, id, logProb)}}
						if stay.frames == 0 && here < s.most {
							next = merge(next, longer)
							continue
						}
						to := min(at+max(stay.frames, 1), frames.n)
						ahead[to] = merge(ahead[to], longer)
					}
				}
			}
			level = prune(next, width)
		}
	}
	best, top := (*trace)(nil), math.Inf(-1)
	for _, a := range ahead[frames.n] {
		if sum := a.sum + f.finish(a.text.standing); sum > top {
			best, top = a.trace, sum
		}
	}
	for ; best != nil; best = best.before {
		out = append(out, best.emission)
	}
	slices.Reverse(out)
	return out, steps, nil
}
