package onnx

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// These tests do not measure the benefit of hotwords: the weights are made up.
// They compare the searches with the sum over all alignments and check that the
// options reach them.

func randomFloats(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(scale * r.NormFloat64())
	}
	return x
}

// randomTransducer has random weights and remembers all tokens. durations is 0
// for RNN-T.
func randomTransducer(t *testing.T, r *rand.Rand, durations int) *transducer {
	d := onnxfile.NewGraph()
	d.Input("targets", onnxfile.Int32, "B", 1).Input("target_length", onnxfile.Int32, "B")
	d.Input("states.1", onnxfile.Float32, 2, "B", 6).Input("states.2", onnxfile.Float32, 2, "B", 6)
	said := d.Op("Gather", []string{d.Const(onnxfile.Floats([]int64{5, 6}, randomFloats(r, 30, 1)...)), "targets"}, onnxfile.AttrInt("axis", 0)) // [B,1,6]
	d.Node("Add", []string{d.Op("Mul", []string{"states.1", d.Const(onnxfile.Floats(nil, 0.6))}), said}, []string{"new.1"})
	d.Node("Identity", []string{"states.2"}, []string{"new.2"})
	memory := d.Op("ReduceMean", []string{"new.1"}, onnxfile.AttrInts("axes", 0), onnxfile.AttrInt("keepdims", 0)) // [B,6]
	row := d.Op("MatMul", []string{memory, d.Const(onnxfile.Floats([]int64{6, 5}, randomFloats(r, 30, 0.5)...))})
	d.Node("Unsqueeze", []string{row, d.Const(ints(2))}, []string{"outputs"})
	d.Node("Identity", []string{"target_length"}, []string{"prednet_lengths"})
	d.Output("outputs", onnxfile.Float32, "B", 5, 1).Output("prednet_lengths", onnxfile.Int32, "B").
		Output("new.1", onnxfile.Float32, 2, "B", 6).Output("new.2", onnxfile.Float32, 2, "B", 6)

	j := onnxfile.NewGraph()
	j.Input("encoder_outputs", onnxfile.Float32, "B", 5, 1).Input("decoder_outputs", onnxfile.Float32, "B", 5, 1)
	sum := j.Op("Transpose", []string{j.Op("Add", []string{"encoder_outputs", "decoder_outputs"})}, onnxfile.AttrInts("perm", 0, 2, 1))
	width := 5 + durations
	out := j.Op("MatMul", []string{sum, j.Const(onnxfile.Floats([]int64{5, int64(width)}, randomFloats(r, 5*width, 0.5)...))})
	j.Node("Unsqueeze", []string{out, j.Const(ints(1))}, []string{"outputs"})
	j.Output("outputs", onnxfile.Float32, "B", 1, 1, nil)

	e := openMadeUp(t, parts{
		ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(d, "decoder.onnx"),
		Joiner: source(j, "joiner.onnx"), Tokens: tokensFile(nemoTokens),
	})
	return e.net.(*transducer)
}

// everyText returns the probability of every text that a transducer can write,
// keyed by its tokens, by enumerating all alignments.
func everyText(t *testing.T, tr *transducer, frames encoded) map[string]float64 {
	total := map[string]float64{}
	heard := map[string][]float32{} // keyed by text and frame
	var walk func(p predictor, text string, at, here int, logProb float64)
	walk = func(p predictor, text string, at, here int, logProb float64) {
		if at >= frames.n {
			total[text] += math.Exp(logProb)
			return
		}
		key := text + string(rune('A'+at))
		scores := heard[key]
		if scores == nil || p.(*statePredictor).next[0] == nil {
			var err error
			scores, err = p.score(context.Background(), frames.frame(at))
			require.NoError(t, err)
			heard[key] = scores
		}
		norm, durations := logSum(scores[:5]), []float64{math.NaN()}
		if len(scores) > 5 {
			durations = nil
			for _, x := range scores[5:] {
				durations = append(durations, float64(x)-logSum(scores[5:]))
			}
		}
		for d, q := range durations {
			for id := range 5 {
				p1 := float64(scores[id]) - norm
				skip := d
				if math.IsNaN(q) {
					if id == tr.blank {
						skip = 1
					}
				} else if p1 += q; q < beamFloor {
					continue
				}
				switch {
				case id == tr.blank:
					walk(p, text, at+max(skip, 1), 0, logProb+p1)
				case float64(scores[tr.blank])-norm > beamSilence || float64(scores[id])-norm < beamFloor:
				case skip == 0 && here+1 < tr.most:
					walk(p.after(id), text+string(rune('0'+id)), at, here+1, logProb+p1)
				default:
					walk(p.after(id), text+string(rune('0'+id)), at+max(skip, 1), 0, logProb+p1)
				}
			}
		}
	}
	walk(tr.predictor(), "", 0, 0, 0)
	return total
}

// finished returns the bonus of a whole text.
func finished(f fusion, ids []int) float64 {
	s := f.begin()
	for _, id := range ids {
		s = f.step(s, id, false)
	}
	return f.finish(s)
}

func digits(text string) []int {
	ids := make([]int, len(text))
	for i := range text {
		ids[i] = int(text[i] - '0')
	}
	return ids
}

func spelled(emissions []emission) string {
	var text []byte
	for _, e := range emissions {
		text = append(text, byte('0'+e.id))
	}
	return string(text)
}

const bananas = "\\data\\\nngram 1=4\n\\1-grams:\n-1 </s>\n-99 <s>\n-6 <unk>\n-1 bana\n\\end\\\n"

// TestTransducerBeamFindsTheBestText compares the beam search of RNN-T and TDT
// with the sum over all alignments, alone, with hotwords and with a language model.
func TestTransducerBeamFindsTheBestText(t *testing.T) {
	model, err := parseARPA("lm.arpa", []byte(bananas))
	require.NoError(t, err)
	for name, durations := range map[string]int{"rnnt": 0, "tdt": 3} {
		t.Run(name, func(t *testing.T) {
			changed := 0
			for seed := range uint64(2) {
				r := rand.New(rand.NewPCG(seed, 7))
				tr := randomTransducer(t, r, durations)
				tr.most = 2
				frames := encoded{data: randomFloats(r, 5*3, 1.5), dim: 5, stride: 3, n: 3}
				total := everyText(t, tr, frames)
				written := map[string]string{}
				for how, f := range map[string]fusion{
					"alone":          {},
					"hotwords":       newFusion([]string{"bana", "x bana", "na"}, tr.vocab, nil),
					"language model": newFusion(nil, tr.vocab, newWordScorer(model, tr.vocab.texts())),
					"both":           newFusion([]string{"xna"}, tr.vocab, newWordScorer(model, tr.vocab.texts())),
				} {
					best, top := "", math.Inf(-1)
					for text, p := range total {
						if s := math.Log(p) + finished(f, digits(text)); s > top {
							best, top = text, s
						}
					}
					got, steps, err := tr.beam(context.Background(), frames, f, 1<<20)
					require.NoError(t, err)
					assert.Equal(t, best, spelled(got), "%s, seed %d", how, seed)
					assert.Positive(t, steps)
					last := 0.0
					for _, e := range got {
						assert.GreaterOrEqual(t, e.start, last)
						assert.Greater(t, e.end, e.start)
						assert.LessOrEqual(t, e.end, 3*tr.shift()+1e-9)
						last = e.start
					}
					written[how] = spelled(got)
				}
				if written["hotwords"] != written["alone"] {
					changed++
				}
			}
			assert.Positive(t, changed, "hotwords must change the result in some cases")
		})
	}
}

// confusedEncoder scores a low tone slightly higher as x than as ba.
func confusedEncoder() *onnxfile.Graph {
	low, high := nemoBands(128)
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", 128, "T").Input("length", onnxfile.Int64, "B")
	rows := g.Op("Transpose", []string{"audio_signal"}, onnxfile.AttrInts("perm", 0, 2, 1))
	w, bias := script{v: 5, blank: 4, low: 2, high: 3}.weights(128, low, high, 0.8)
	mix := make([]float32, 25)
	for _, at := range [][2]int{{0, 0}, {2, 1}, {2, 2}, {3, 3}, {4, 4}} {
		mix[at[0]*5+at[1]] = 1
	}
	x := g.Op("Mul", []string{scores(g, everyNth(g, rows, 8), w, bias), g.Const(onnxfile.Floats([]int64{1}, 6))}) // scaled up to the confidence of a trained network
	x = scores(g, x, onnxfile.Floats([]int64{5, 5}, mix...), onnxfile.Floats([]int64{5}, 0, 0.3, 0, 0, 0))
	g.Node("Transpose", []string{x}, []string{"outputs"}, onnxfile.AttrInts("perm", 0, 2, 1))
	g.Node("Div", []string{g.Op("Add", []string{"length", g.Const(ints(7))}), g.Const(ints(8))}, []string{"encoded_lengths"})
	return g.Output("outputs", onnxfile.Float32, "B", 5, "T8").Output("encoded_lengths", onnxfile.Int64, "B").
		Meta("model_type", "EncDecRNNTBPEModel").Meta("vocab_size", "4").Meta("normalize_type", "per_feature").
		Meta("subsampling_factor", "8").Meta("feat_dim", "128").Meta("pred_rnn_layers", "2").Meta("pred_hidden", "6")
}

// TestTransducersTakeHotwordsAndLanguageModels checks that the options and
// files reach both the greedy search and the beam search.
func TestTransducersTakeHotwordsAndLanguageModels(t *testing.T) {
	for name, durations := range map[string][]float32{"rnnt": nil, "tdt": {0, 0, 3, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			m := parts{
				ONNX: source(confusedEncoder(), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"),
				Joiner: source(madeUpJoiner(durations), "joiner.onnx"), Tokens: tokensFile(nemoTokens),
			}
			plain := openMadeUp(t, m)
			m.LM = lmFile(bananas)
			knowing := openMadeUp(t, m)
			assert.True(t, plain.Abilities().BeamForHotwords)
			assert.False(t, knowing.Abilities().BeamForHotwords)
			for _, beam := range []int{1, 5} {
				text := func(e *Engine, hotwords ...string) string {
					tr, err := e.Transcribe(context.Background(), recording(), recordingSpeech[:1], asr.Options{BeamSize: beam, Hotwords: hotwords})
					require.NoError(t, err)
					require.Len(t, tr.Segments, 1)
					return tr.Segments[0].Text
				}
				assert.Equal(t, "Xna", text(plain), "beam %d", beam)
				assert.Equal(t, "Bana", text(plain, "Bana"), "beam %d", beam)
				if beam > 1 { // greedy search cannot drop the beginning of a hotword
					assert.Equal(t, "Xna", text(plain, "banana"), "a part of a hotword is not a hotword")
				}
				assert.Equal(t, "Bana", text(knowing), "beam %d", beam)
				assert.Equal(t, "Xna", text(knowing, "xna"), "beam %d", beam)
			}
		})
	}
}

// TestTransducersInventNothingInSilence checks that hotwords and language model
// only choose between tokens and add none in silence.
func TestTransducersInventNothingInSilence(t *testing.T) {
	model, err := parseARPA("lm.arpa", []byte(bananas))
	require.NoError(t, err)
	for name, durations := range map[string][]float32{"rnnt": nil, "tdt": {0, 3, 0, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			e := openMadeUp(t, parts{
				ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"),
				Joiner: source(madeUpJoiner(durations), "joiner.onnx"), Tokens: tokensFile(nemoTokens),
			})
			tr := e.net.(*transducer)
			f := newFusion([]string{"bana", "x"}, tr.vocab, newWordScorer(model, tr.vocab.texts()))
			const n = 200
			frames := encoded{dim: 5, stride: n, n: n}
			for _, p := range []float64{0.005, 0.005, 0.015, 0.015, 0.96} {
				for range n {
					frames.data = append(frames.data, float32(math.Log(p)))
				}
			}
			for _, beam := range []int{1, 5} {
				got, steps, err := tr.search(context.Background(), frames, request{beam: beam, fusion: f})
				require.NoError(t, err)
				assert.Empty(t, got)
				assert.Equal(t, n, steps, "silence is scored once per frame")
			}
		})
	}
}

// TestParaformerRescoresItsRows compares the choice with every sequence of
// tokens.
func TestParaformerRescoresItsRows(t *testing.T) {
	v := newVocabulary("tokens.json", paraformerTokens, writeContinued)
	model, err := parseARPA("lm.arpa", []byte("\\data\\\nngram 1=5\n\\1-grams:\n-1 </s>\n-99 <s>\n-1 hello\n-1 go\n-2 你\n\\end\\\n"))
	require.NoError(t, err)
	p := &paraformer{vocab: v}
	changed := 0
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 11))
		data := randomFloats(r, 4*9, 1)
		for t := range 3 {
			data[t*9+2] = -9 // no end yet
		}
		if seed%2 == 0 {
			data[3*9+2] = 9 // the network's text ends after three tokens
		} else {
			data[3*9+2] = -9
		}
		for how, f := range map[string]fusion{
			"alone":    {},
			"hotwords": newFusion([]string{"hello go", "你 好"}, v, nil),
			"both":     newFusion([]string{"hello"}, v, newWordScorer(model, v.texts())),
		} {
			rows := 3 + int(seed%2)
			var best []int
			top := math.Inf(-1)
			for path := range int(math.Pow(9, float64(rows))) {
				ids, sum := make([]int, rows), 0.0
				for t, rest := 0, path; t < rows; t, rest = t+1, rest/9 {
					ids[t] = rest % 9
					row := data[t*9:][:9]
					if p := float64(row[ids[t]]) - logSum(row); p < beamFloor {
						sum = math.Inf(-1)
					} else {
						sum += p
					}
				}
				if s := sum + finished(f, ids); s > top {
					best, top = ids, s
				}
			}
			var got []int
			for _, e := range p.choose(data, request{beam: 1 << 20, fusion: f}) {
				got = append(got, e.id)
				assert.Less(t, e.logProb, 0.0)
			}
			assert.Equal(t, best, got, "%s, seed %d", how, seed)
			if plain := p.choose(data, request{}); how != "alone" && spelled(plain) != string(toBytes(got)) {
				changed++
			}
		}
	}
	assert.Positive(t, changed)
}

func toBytes(ids []int) []byte {
	var out []byte
	for _, id := range ids {
		out = append(out, byte('0'+id))
	}
	return out
}
