package onnx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/internal/engine/ort"
)

const (
	// peakSeconds is the length of a us_cif_peak entry: a third of 60 ms.
	peakSeconds = lfrSeconds / 3
	// peakDelay is how many entries FunASR shifts a peak to the left.
	peakDelay = 1.5
	// peakLongest is the longest token in entries.
	peakLongest = 30
	peakLevel   = 1 - 1e-4
)

// paraformer is FunASR's offline Paraformer: not CTC, one row per token.
type paraformer struct {
	sessions
	funASR
	vocab *vocabulary
	lens  ort.Info
	peaks bool
}

func openParaformer(m parts, g *checker, vocab *vocabulary) (network, error) {
	p := &paraformer{sessions: sessions{batch: !g.oneAtATime("speech")}, funASR: newFunASR(), vocab: vocab}
	inputs := []ort.Info{float("speech", -1, -1, lfrDim), {Name: "speech_lengths"}}
	g.ports(inputs, float("logits", -1, -1, -1), ort.Info{Name: "token_num"})
	p.lens = g.integer("speech_lengths", 1)
	g.width("logits", vocab)
	p.cmvn(m, g)
	names := []string{"logits", "token_num"}
	if _, p.peaks = g.Output("us_cif_peak"); p.peaks {
		names = append(names, "us_cif_peak")
	}
	return p, p.open(m, g, names...)
}

func (p *paraformer) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	out, err := p.encoder.Run(ctx, map[string]*ort.Tensor{
		"speech":         pad(windows, 0),
		"speech_lengths": ort.NewIntegers(p.lens, frameCounts(windows)),
	})
	if err != nil {
		if !errors.Is(err, ort.ErrRun) {
			return nil, err
		}
		// The published graphs fail inside when their predictor finds no token
		// (silence). For a single window, that is an empty result. The windows
		// of a failed batch run one by one.
		hyps := make([]hypothesis, len(windows))
		if len(windows) == 1 {
			return hyps, nil
		}
		for i := range windows {
			h, err := p.run(ctx, windows[i:i+1], req)
			if err != nil {
				return nil, err
			}
			hyps[i] = h[0]
		}
		return hyps, nil
	}
	n, columns := len(windows), p.vocab.size()
	data, rows, err := scoreRows(p.source, "logits", out[0], n, p.vocab)
	if err != nil {
		return nil, err
	}
	counts := out[1].Integers()
	if len(counts) != n {
		return nil, fmt.Errorf("%s: %w: output token_num: expected %d numbers, found %d", p.source, ErrContract, n, len(counts))
	}
	hyps := make([]hypothesis, n)
	for i, w := range windows {
		own := int(min(max(counts[i], 0), int64(rows)))
		h := &hyps[i]
		h.emissions = p.choose(data[i*rows*columns:][:own*columns], req)
		h.unbounded = true
		if p.peaks {
			s := out[2].Shape()
			if len(s) != 2 || s[0] != int64(n) {
				return nil, fmt.Errorf("%s: %w: output us_cif_peak: expected float32[%d,?], found %v", p.source, ErrContract, n, s)
			}
			per := int(s[1])
			h.unbounded = !peakTimes(h.emissions, out[2].Float32()[i*per:(i+1)*per], w.frames)
		}
	}
	return hyps, nil
}

// choose returns the tokens of a window's rows, one per row up to the network's
// end: each row's best or, with hotwords or a language model, the best sequence
// of a beam. The network fixes the number of tokens first, so hotwords with
// another number of tokens can't be found.
func (p *paraformer) choose(data []float32, req request) []emission {
	columns := p.vocab.size()
	// FunASR's exports return log-softmax; the norms are then 0.
	var rows [][]float32
	var norms []float64
	for ; len(data) > 0; data = data[columns:] {
		row := data[:columns]
		if p.vocab.symbols[argmax(row)] == "</s>" {
			break
		}
		rows, norms = append(rows, row), append(norms, logSum(row))
	}
	ids := make([]int, len(rows))
	if req.fusion.none() {
		for t, row := range rows {
			ids[t] = argmax(row)
		}
	} else {
		p.rescore(ids, rows, norms, &req.fusion, max(req.beam, 1))
	}
	out := make([]emission, len(rows))
	for t, id := range ids {
		out[t] = emission{id: id, logProb: min(float64(rows[t][id])-norms[t], 0)}
	}
	return out
}

// rescore fills ids with the best sequence, bonus included, of one token per
// row, as found by a beam of width sequences.
func (p *paraformer) rescore(ids []int, rows [][]float32, norms []float64, f *fusion, width int) {
	type sequence struct {
		before *sequence
		id     int
		sum    float64
		standing
	}
	beam := []*sequence{{standing: f.begin()}}
	for t, row := range rows {
		list := candidates(nil, row, norms[t], -1)
		list = slices.DeleteFunc(list, func(id int) bool { return p.vocab.symbols[id] == "</s>" })
		if len(list) == 0 {
			list = append(list, argmax(row)) // none is likely
		}
		var next []*sequence
		for _, s := range beam {
			for _, id := range list {
				next = append(next, &sequence{s, id, s.sum + float64(row[id]) - norms[t], f.step(s.standing, id, false)})
			}
		}
		slices.SortStableFunc(next, func(a, b *sequence) int { return cmp.Compare(b.sum+b.bonus, a.sum+a.bonus) })
		beam = next[:min(len(next), width)]
	}
	best := slices.MaxFunc(beam, func(a, b *sequence) int {
		return cmp.Compare(a.sum+f.finish(a.standing), b.sum+f.finish(b.standing))
	})
	for t := len(rows) - 1; t >= 0; t-- {
		ids[t], best = best.id, best.before
	}
}

// peakTimes sets the tokens' times from the predictor's peaks: token i lasts
// from peak i to peak i+1, at most 0.6 s. It is false if peaks do not fit.
func peakTimes(tokens []emission, peaks []float32, frames int) bool {
	var at []float64
	for k, p := range peaks[:min(len(peaks), 3*frames)] {
		if p > peakLevel {
			at = append(at, max(float64(k)-peakDelay, 0))
		}
	}
	if len(at) != len(tokens)+1 {
		return false
	}
	for i := range tokens {
		tokens[i].start = at[i] * peakSeconds
		tokens[i].end = min(at[i+1], at[i]+peakLongest) * peakSeconds
	}
	return true
}
