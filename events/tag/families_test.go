//go:build families

package tag

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/modeltest"
)

// randomTagger has random weights with the ports of CED or of icefall's
// Zipformer.
func randomTagger(ced bool) *onnxfile.Graph {
	r := rand.New(rand.NewPCG(11, 1))
	random := func(scale float64, shape ...int64) onnxfile.Tensor {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64() * scale)
		}
		return onnxfile.Floats(shape, v...)
	}
	g := onnxfile.NewGraph()
	x, bands, shift, gain := "feats", int64(64), float32(20), float32(0.05)
	if ced {
		g.Input("feats", onnxfile.Float32, "batch_size", 64, "time_dim")
	} else {
		bands, shift, gain = 80, 8, 0.25
		g.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
		x = g.Op("Transpose", []string{"x"}, onnxfile.AttrInts("perm", 0, 2, 1))
	}
	x = g.Op("Mul", []string{g.Op("Add", []string{x, g.Const(onnxfile.Floats(nil, shift))}), g.Const(onnxfile.Floats(nil, gain))})
	w := random(1/math.Sqrt(float64(3*bands)), 48, bands, 3)
	y := g.Op("Tanh", []string{g.Op("Conv", []string{x, g.Const(w)}, onnxfile.AttrInts("kernel_shape", 3), onnxfile.AttrInts("pads", 1, 1))})
	mean := g.Op("ReduceMean", []string{y}, onnxfile.AttrInts("axes", 2), onnxfile.AttrInt("keepdims", 0))
	square := g.Op("ReduceMean", []string{g.Op("Mul", []string{y, y})}, onnxfile.AttrInts("axes", 2), onnxfile.AttrInt("keepdims", 0))
	pooled := g.Op("Concat", []string{mean, square}, onnxfile.AttrInt("axis", 1))
	logits := g.Op("MatMul", []string{pooled, g.Const(random(2, 96, fullClasses))})
	if ced {
		g.Node("Sigmoid", []string{logits}, []string{"prob"})
		return g.Output("prob", onnxfile.Float32, "batch_size", fullClasses).Meta("model_type", "CED").Meta("version", "1.0").
			Meta("model_author", "RicherMans").Meta("url", "x")
	}
	nothing := g.Op("Mul", []string{g.Op("Cast", []string{"x_lens"}, onnxfile.AttrInt("to", 1)), g.Const(onnxfile.Floats(nil, 0))})
	nothing = g.Op("Unsqueeze", []string{nothing, g.Const(onnxfile.Ints([]int64{1}, 1))})
	g.Node("Sigmoid", []string{g.Op("Add", []string{logits, nothing})}, []string{"logits"})
	return g.Output("logits", onnxfile.Float32, "N", fullClasses).Meta("model_type", "zipformer2").Meta("version", "1").
		Meta("model_author", "k2-fsa").Meta("comment", "zipformer2 audio tagger").Meta("url", "x")
}

// cedTruth computes torchaudio's MelSpectrogram(512, hop 160, 64 bands, HTK) in
// decibels, at most 120 below the loudest; [bands, frames].
func cedTruth(x []float32) ([]float32, int64) {
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	var edges [66]float64
	for i := range edges {
		edges[i] = 700 * (math.Pow(10, mel(8000)*float64(i)/65/2595) - 1)
	}
	var sines, cosines, window [512]float64
	for i := range window {
		sines[i], cosines[i] = math.Sincos(2 * math.Pi * float64(i) / 512)
		window[i] = 0.5 - 0.5*cosines[i]
	}
	n, count := len(x), len(x)/160+1
	out, top := make([]float64, 64*count), math.Inf(-1)
	for t := range count {
		var power [257]float64
		for k := range power {
			var re, im float64
			for i := range 512 {
				at := t*160 - 256 + i
				if at < 0 {
					at = -at
				}
				if at >= n {
					at = 2*n - 2 - at
				}
				v := float64(x[at]) * window[i]
				re += v * cosines[k*i%512]
				im += v * sines[k*i%512]
			}
			power[k] = re*re + im*im
		}
		for b := range 64 {
			sum := 0.0
			for k, p := range power {
				hz := float64(k) * 31.25
				sum += p * max(0, min((hz-edges[b])/(edges[b+1]-edges[b]), (edges[b+2]-hz)/(edges[b+2]-edges[b+1])))
			}
			out[b*count+t] = 10 * math.Log10(max(sum, 1e-10))
			top = max(top, out[b*count+t])
		}
	}
	features := make([]float32, len(out))
	for i, v := range out {
		features[i] = float32(max(v, top-120))
	}
	return features, int64(count)
}

// furthest returns the largest difference between two rows.
func furthest(a, b []float32) (worst float64) {
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i]-b[i])))
	}
	return worst
}

// sherpaTags asks sherpa-onnx for the scores of each stretch of sound.
func sherpaTags(t *testing.T, dir, kind string, windows [][]float32) [][]float32 {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(fullCSV)).ReadAll()
	require.NoError(t, err)
	var labels strings.Builder // each name needs quotes
	labels.WriteString("index,mid,display_name\n")
	for _, r := range rows[1:] {
		fmt.Fprintf(&labels, "%s,%s,\"%s\"\n", r[0], r[1], r[2])
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "labels.csv"), []byte(labels.String()), 0o600))
	sound, err := json.Marshal(windows)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "windows.json"), sound, 0o600))
	var scores [][]float32
	modeltest.RunSherpa(t, &scores, dir, kind)
	require.Len(t, scores, len(windows))
	return scores
}

// TestFamiliesEqualSherpaONNX compares the scores of several windows with
// sherpa-onnx's for the same stretches of sound. Where sherpa-onnx approximates
// the features, the scores are also compared with scores from features computed
// by definition.
func TestFamiliesEqualSherpaONNX(t *testing.T) {
	for _, test := range []struct {
		name, kind string
		// near is the permitted distance from sherpa-onnx's scores: sherpa-onnx
		// approximates CED's spectrum, half a hop off, with another window and
		// mel scale.
		near float64
	}{{"Zipformer tagger", "zipformer", 1e-4}, {"CED", "ced", 0.1}} {
		t.Run(test.kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "model.onnx")
			require.NoError(t, os.WriteFile(path, randomTagger(test.kind == "ced").Bytes(), 0o600))
			m, err := openSource(ort.Source{Path: path, Role: "tagger"}, config{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, m.Close()) }()
			samples := noise(11*audio.SampleRate + 777)
			var mine [][]float32
			require.NoError(t, m.Scores(t.Context(), audio.FromSamples(samples), func(_ int, s []float32) error {
				mine = append(mine, s)
				return nil
			}))
			windows := make([][]float32, m.plan.units(len(samples)))
			require.Len(t, mine, len(windows))
			require.Greater(t, len(windows), 9)
			for i := range windows {
				windows[i] = make([]float32, m.plan.window)
				copy(windows[i], samples[i*m.plan.hop:])
			}
			theirs := sherpaTags(t, dir, test.kind, windows)
			var off, defined float64
			for i, row := range theirs {
				scores := make([]float32, len(mine[i]))
				pick(scores, row)
				off = max(off, furthest(mine[i], scores))
				if test.kind != "ced" {
					continue
				}
				features, frames := cedTruth(windows[i])
				out, err := m.session.Run(t.Context(), map[string]*ort.Tensor{"feats": ort.NewFloat32([]int64{1, 64, frames}, features)}, "prob")
				require.NoError(t, err)
				pick(scores, out[0].Float32())
				defined = max(defined, furthest(mine[i], scores))
			}
			t.Logf("%d windows: scores within %.1e of sherpa-onnx, CED's %.1e of those by definition", len(windows), off, defined)
			modeltest.AssertFamilyRow(t, test.name, fmt.Sprint(len(windows), " windows"), test.kind != "ced")
			assert.Less(t, off, test.near)
			assert.Less(t, defined, 1e-3)
		})
	}
}
