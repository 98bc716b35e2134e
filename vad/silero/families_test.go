//go:build families

package silero

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	ox "github.com/otograph/otograph/internal/files/onnxgraph"
	"github.com/otograph/otograph/internal/test/sherpa"
)

// randomDetector has random weights and the inputs and outputs of Silero v4,
// of k2's export of it, or of v5 and v6: its score comes from the energies of
// 16 samples each and a state.
func randomDetector(kind string) *ox.Graph {
	r := rand.New(rand.NewPCG(21, 1))
	random := func(scale float64, rows, columns int64) ox.Tensor {
		v := make([]float32, rows*columns)
		for i := range v {
			v[i] = float32(r.NormFloat64() * scale)
		}
		return ox.Floats([]int64{rows, columns}, v...)
	}
	g := ox.New()
	in, out, samples, size := "input", "output", int64(512), int64(64)
	batch := any("N")
	switch kind {
	case "v5":
		samples, size = 576, 128
	case "k2":
		in, out, batch = "x", "prob", 1
	}
	g.Input(in, ox.Float32, batch, samples)
	switch kind { // sherpa-onnx requires this order
	case "v5":
		g.Input("state", ox.Float32, 2, batch, 128).Input("sr", ox.Int64)
	case "v4":
		g.Input("sr", ox.Int64)
		fallthrough
	default:
		g.Input("h", ox.Float32, 2, batch, 64).Input("c", ox.Float32, 2, batch, 64)
	}
	pieces := g.Op("Reshape", []string{in, g.Const(ox.Ints([]int64{3}, -1, samples/16, 16))})
	e := g.Op("ReduceMean", []string{g.Op("Mul", []string{pieces, pieces})}, ox.AttrInts("axes", 2), ox.AttrInt("keepdims", 0))
	e = g.Op("Log", []string{g.Op("Add", []string{e, g.Const(ox.Floats(nil, 1e-7))})})
	e = g.Op("Mul", []string{g.Op("Add", []string{e, g.Const(ox.Floats(nil, 8))}), g.Const(ox.Floats(nil, 0.25))})
	hidden := g.Op("Tanh", []string{g.Op("MatMul", []string{e, g.Const(random(0.3, samples/16, size))})})
	hidden = g.Op("Unsqueeze", []string{hidden, g.Const(ox.Ints([]int64{1}, 0))})
	hidden = g.Op("Concat", []string{hidden, hidden}, ox.AttrInt("axis", 0))
	step := func(state, next string, keep float32) string {
		kept := g.Op("Mul", []string{state, g.Const(ox.Floats(nil, keep))})
		g.Node("Tanh", []string{g.Op("Add", []string{kept, hidden})}, []string{next})
		return g.Op("Gather", []string{next, g.Const(ox.Ints(nil, 1))}, ox.AttrInt("axis", 0))
	}
	states := map[string][]string{"v4": {"hn", "cn"}, "k2": {"new_h", "new_c"}, "v5": {"stateN"}}[kind]
	var top string
	if kind == "v5" {
		top = step("state", states[0], 0.7)
	} else {
		top = g.Op("Add", []string{step("h", states[0], 0.7), step("c", states[1], 0.4)})
	}
	mean := g.Op("ReduceMean", []string{e}, ox.AttrInts("axes", 1), ox.AttrInt("keepdims", 1))
	score := g.Op("Add", []string{g.Op("MatMul", []string{top, g.Const(random(0.5, size, 1))}), g.Op("Mul", []string{mean, g.Const(ox.Floats(nil, 3))})})
	if kind != "k2" {
		score = g.Op("Add", []string{score, g.Op("Mul", []string{g.Op("Cast", []string{"sr"}, ox.AttrInt("to", 1)), g.Const(ox.Floats(nil, 0))})})
	}
	g.Node("Sigmoid", []string{score}, []string{out})
	g.Output(out, ox.Float32, batch, 1)
	for _, s := range states {
		g.Output(s, ox.Float32, 2, batch, size)
	}
	if kind == "k2" {
		g.Meta("model_type", "silero-vad-v4").Meta("sample_rate", "16000").Meta("version", "4").Meta("h_shape", "2,1,64").Meta("c_shape", "2,1,64")
	}
	return g
}

// sherpaRule applies the rule of sherpa-onnx's silero-vad-model.cc to
// probabilities: it returns whether each window is speech, with pauses and
// speech of 10 ms and more.
func sherpaRule(probabilities []float32, threshold float32) []bool {
	speech, from, until := false, 0, 0
	low := max(threshold-0.15, 0.01)
	out := make([]bool, len(probabilities))
	for t, p := range probabilities {
		now := (t + 1) * 512
		if p > threshold {
			until = 0
		}
		switch {
		case p > threshold && from == 0:
			from = now
		case p > threshold && !speech:
			speech = now-from >= 160
		case p < threshold && !speech:
			from, until = 0, 0
		case p > low || p >= threshold:
		default:
			if until == 0 {
				until = now
			}
			if now-until >= 160 {
				speech, from, until = false, 0, 0
			}
		}
		out[t] = speech
	}
	return out
}

// TestFamilies compares the windows of speech with sherpa-onnx's, at six
// thresholds.
func TestFamilies(t *testing.T) {
	thresholds := []float32{0.2, 0.35, 0.5, 0.65, 0.8, 0.9}
	r := rand.New(rand.NewPCG(5, 5))
	samples := make([]float32, 512*512) // noise that swells and fades
	for i, level := 0, 0.0; i < len(samples); i++ {
		if i%4000 == 0 {
			level = 0.3 * r.Float64() * r.Float64() * r.Float64()
		}
		samples[i] = float32(level * r.NormFloat64())
	}
	for _, test := range []struct {
		name, kind string
		lead       int
	}{
		{"Silero v4", "v4", 0},
		{"Silero v4, k2's export", "k2", 0},
		{"Silero v5, v6", "v5", 64}, // without 64 zeros its first window has no context, and all windows are 4 ms late
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "model.onnx")
			require.NoError(t, os.WriteFile(path, randomDetector(test.kind).Bytes(), 0o600))
			m, err := openSource(ort.Source{Path: path, Role: "vad"}, "", Options{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, m.Close()) }()
			mine, err := m.Probabilities(t.Context(), audio.FromSamples(samples))
			require.NoError(t, err)
			sound, err := json.Marshal(samples)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "samples.json"), sound, 0o600))
			args := []string{fmt.Sprint(test.lead)}
			for _, threshold := range thresholds {
				args = append(args, fmt.Sprint(threshold))
			}
			var theirs [][]bool
			sherpa.Run(t, &theirs, dir, args...)
			require.Len(t, theirs, len(thresholds))
			differ, speech := 0, 0
			for i, heard := range theirs {
				want := sherpaRule(mine, thresholds[i])
				require.Len(t, want, len(heard))
				for w := range heard {
					if heard[w] != want[w] {
						differ++
					}
					if heard[w] {
						speech++
					}
				}
			}
			all := len(thresholds) * len(mine)
			t.Logf("%s: %d of %d windows differ, %d are speech", m.layout.name, differ, all, speech)
			assert.Zero(t, differ)
			sherpa.InTable(t, test.name, fmt.Sprint(all, " decisions"), differ == 0)
			assert.Greater(t, speech, all/20)
			assert.Less(t, speech, all*19/20)
		})
	}
}
