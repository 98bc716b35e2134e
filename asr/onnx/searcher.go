package onnx

import (
	"cmp"
	"context"

	"github.com/otograph/otograph/internal/engine/ort"
)

// searcher finds the tokens of a transducer's encoder frames.
type searcher struct {
	vocab *vocabulary
	blank int
	// most is the maximum number of tokens per frame.
	most int
	// seconds is the duration of a frame.
	seconds float64
	// joint is the graph that scores tokens; it is named in errors.
	joint ort.Source
	// begin returns the prediction network's state before a text.
	begin func() predictor
}

// predictor is the state of a prediction network after a text.
type predictor interface {
	// score joins an encoder frame with the state. It returns the scores of the
	// tokens and, in TDT, of the durations.
	score(ctx context.Context, frame []float32) ([]float32, error)
	// after returns the state after a token, once the predictor has scored.
	after(token int) predictor
}

// encoded holds the encoder's output for a window: n frames of dim numbers. The
// numbers of a frame are stride apart, the frames step apart.
type encoded struct {
	data                 []float32
	dim, stride, step, n int
}

// frame returns one of the n frames.
func (e encoded) frame(at int) []float32 {
	frame := make([]float32, e.dim)
	for d := range frame {
		frame[d] = e.data[d*e.stride+at*e.step]
	}
	return frame
}

// search finds a window's tokens. It is greedy without hotwords and language
// model, or if the beam size is 1.
func (s *searcher) search(ctx context.Context, frames encoded, req request) ([]emission, int, error) {
	if req.fusion.none() || req.beam <= 1 {
		d := cmp.Or(req.draft, &draft{})
		return s.greedy(ctx, frames, req.fusion, &d.text)
	}
	return s.beam(ctx, frames, req.fusion, req.beam)
}

// score returns a predictor's scores of tokens, and of TDT's durations.
func (s *searcher) score(ctx context.Context, p predictor, frame []float32) (tokens, durations []float32, err error) {
	scores, err := p.score(ctx, frame)
	if err != nil {
		return nil, nil, err
	}
	v := s.vocab.size()
	if len(scores) < v {
		return nil, nil, widthError(s.joint, "outputs", len(scores), s.vocab)
	}
	return scores[:v], scores[v:], nil
}

// greedyText is the text of the frames that a greedy search has read.
type greedyText struct {
	predictor  predictor // nil before the first frame
	standing   standing
	end        int // of the frames
	next, here int // the next frame to score, and its tokens so far
	emissions  []emission
}

// greedy continues a text with the next frames: it takes the best token at each
// step. A joint output wider than the vocabulary is TDT's: the rest are durations
// of 0, 1, 2 … frames. The bonus of hotwords and language model chooses between
// tokens; the network alone decides whether there is a token at all and how long
// it lasts (A. Andrusenko and others 2025, TurboBias).
func (s *searcher) greedy(ctx context.Context, frames encoded, f fusion, g *greedyText) (out []emission, steps int, err error) {
	if g.predictor == nil {
		g.predictor, g.standing = s.begin(), f.begin()
	}
	first := g.end
	g.end += frames.n
	for g.next < g.end {
		scores, durations, err := s.score(ctx, g.predictor, frames.frame(g.next-first))
		if err != nil {
			return nil, 0, err
		}
		steps++
		token, skip := argmax(scores), argmax(durations)
		if token != s.blank {
			norm := logSum(scores)
			if !f.none() {
				// The best candidate of the network, with its bonus.
				top := float64(scores[token]) + f.step(g.standing, token, false).bonus
				for _, id := range candidates(nil, scores, norm, s.blank) {
					if sum := float64(scores[id]) + f.step(g.standing, id, false).bonus; sum > top {
						token, top = id, sum
					}
				}
				g.standing = f.step(g.standing, token, false)
			}
			g.emissions = append(g.emissions, s.emission(g.next, skip, g.end, token, func(id int) float64 { return min(float64(scores[id])-norm, 0) }))
			g.predictor = g.predictor.after(token)
			g.here++
		}
		if token == s.blank || g.here >= s.most {
			skip = max(skip, 1)
		}
		if skip > 0 {
			g.next += skip
			g.here = 0
		}
	}
	return g.emissions, steps, nil
}

// emission returns a token at frame at of n, for at least one frame.
func (s *searcher) emission(at, lasts, n, id int, logProb func(id int) float64) emission {
	return emission{
		id: id, start: float64(at) * s.seconds, end: float64(min(at+max(lasts, 1), n)) * s.seconds,
		logProb: logProb(id), blank: exp(logProb(s.blank)),
	}
}
