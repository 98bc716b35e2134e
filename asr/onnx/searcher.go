package onnx

import (
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
	data              []float32
	dim, stride, step int
	n                 int
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
		return s.greedy(ctx, frames, req.fusion)
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

// greedy takes the best token at each step. A joint output wider than the
// vocabulary is TDT's: the rest are durations of 0, 1, 2 … frames. The bonus of
// hotwords and language model chooses between tokens; the network alone decides
// whether there is a token at all and how long it lasts (A. Andrusenko and
// others 2025, TurboBias).
func (s *searcher) greedy(ctx context.Context, frames encoded, f fusion) (out []emission, steps int, err error) {
	p, at := s.begin(), f.begin()
	here := 0 // tokens on this frame
	for now := 0; now < frames.n; {
		scores, durations, err := s.score(ctx, p, frames.frame(now))
		if err != nil {
			return nil, 0, err
		}
		steps++
		token, skip := argmax(scores), argmax(durations)
		if token != s.blank {
			norm := logSum(scores)
			if !f.none() {
				// The best candidate of the network, with its bonus.
				top := float64(scores[token]) + f.step(at, token, false).bonus
				for _, id := range candidates(nil, scores, norm, s.blank) {
					if sum := float64(scores[id]) + f.step(at, id, false).bonus; sum > top {
						token, top = id, sum
					}
				}
				at = f.step(at, token, false)
			}
			out = append(out, s.emission(now, skip, frames.n, token, func(id int) float64 { return min(float64(scores[id])-norm, 0) }))
			p = p.after(token)
			here++
		}
		if token == s.blank || here >= s.most {
			skip = max(skip, 1)
		}
		if skip > 0 {
			now += skip
			here = 0
		}
	}
	return out, steps, nil
}

// emission returns a token at frame at of n, for at least one frame.
func (s *searcher) emission(at, lasts, n, id int, logProb func(id int) float64) emission {
	return emission{
		id: id, start: float64(at) * s.seconds, end: float64(min(at+max(lasts, 1), n)) * s.seconds,
		logProb: logProb(id), blank: exp(logProb(s.blank)),
	}
}
