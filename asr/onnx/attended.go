package onnx

import (
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/wordtimes"
)

// position is the number of samples of a position of wordtimes.Input.
const position = audio.SampleRate / 50

// attend sets the times of a window's tokens from the attention to the sound
// at the steps that wrote them. Without attention it sets none.
func (e *Engine) attend(w decode.Window, samples []float32, h *hypothesis) {
	if len(h.attention) == 0 || len(h.emissions) == 0 {
		return
	}
	tokens := make([]decode.Token, len(h.emissions))
	for i, m := range h.emissions {
		tokens[i].Text = e.vocab.writtenBy(m)
	}
	words := decode.Words(tokens)
	in := wordtimes.Input{Samples: samples, Speech: w.Spoken(), Prefix: 1, Scores: attentionScores(h, len(tokens)+2, len(samples)/position)}
	for _, p := range words {
		in.Words = append(in.Words, wordtimes.Word{Text: p.Text, First: p.First, Last: p.Last})
	}
	h.attention = nil
	times := wordtimes.Times(in)
	if times == nil { // the speech is too short: the words share it by their letters
		decode.Align(words, 0, float64(len(samples))/audio.SampleRate, nil)
		for _, w := range words {
			times = append(times, wordtimes.Time{Start: w.Start, End: w.End})
		}
	}
	at, k := 0.0, 0
	for i, p := range words {
		for ; k < p.First; k++ { // punctuation
			h.emissions[k].start, h.emissions[k].end = at, at
		}
		length := (times[i].End - times[i].Start) / float64(max(p.Last+1-k, 1))
		for at = times[i].Start; k <= p.Last; k++ {
			h.emissions[k].start, h.emissions[k].end = at, at+length
			at += length
		}
	}
	for ; k < len(tokens); k++ {
		h.emissions[k].start, h.emissions[k].end = at, at
	}
	h.unbounded, h.timed = false, true
}

// attentionScores turns the attention by step, head and encoder frame into
// scores by head, token and position. Steps that were not computed (the step of
// the end itself) repeat the last one.
func attentionScores(of *hypothesis, tokens, positions int) [][][]float32 {
	steps := of.attention
	out := make([][][]float32, len(steps[0]))
	for h := range out {
		out[h] = make([][]float32, tokens)
		for t := range out[h] {
			from := steps[min(t, len(steps)-1)][h]
			row := make([]float32, positions)
			for p := range row {
				frame := (p*position + position/2 - of.grid.middle + of.grid.stride/2) / of.grid.stride
				row[p] = from[min(max(frame, 0), len(from)-1)]
			}
			out[h][t] = row
		}
	}
	return out
}
