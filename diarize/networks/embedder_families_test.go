//go:build families

package networks

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// randomSpeakers has random weights between features [N,T,80] and a vector: a
// convolution over three frames, tanh, mean and square over time, a projection.
func randomSpeakers(in, out string, dim int64, meta map[string]string) *onnxfile.Graph {
	r := rand.New(rand.NewPCG(uint64(dim), 1))
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
	const hidden = 48
	g := onnxfile.NewGraph()
	g.Input(in, onnxfile.Float32, "B", "T", 80)
	x := g.Op("Transpose", []string{in}, onnxfile.AttrInts("perm", 0, 2, 1))
	x = g.Op("Conv", []string{x, g.Const(random(0.045, hidden, 80, 3))}, onnxfile.AttrInts("kernel_shape", 3), onnxfile.AttrInts("pads", 1, 1))
	x = g.Op("Tanh", []string{x})
	mean := g.Op("ReduceMean", []string{x}, onnxfile.AttrInts("axes", 2), onnxfile.AttrInt("keepdims", 0))
	square := g.Op("ReduceMean", []string{g.Op("Mul", []string{x, x})}, onnxfile.AttrInts("axes", 2), onnxfile.AttrInt("keepdims", 0))
	pooled := g.Op("Concat", []string{mean, square}, onnxfile.AttrInt("axis", 1))
	g.Node("MatMul", []string{pooled, g.Const(random(1, 2*hidden, dim))}, []string{out})
	g.Output(out, onnxfile.Float32, "B", dim)
	for k, v := range meta {
		g.Meta(k, v)
	}
	return g.Meta("language", "English").Meta("url", "x").Meta("comment", "x").Meta("sample_rate", "16000").Meta("output_dim", fmt.Sprint(dim))
}

// definition computes torchaudio's kaldi.fbank of 80 bands from 20 to 8000 Hz
// minus the mean of each band, as in the training of WeSpeaker (16-bit samples,
// Hamming) and 3D-Speaker (Povey); [frames, bands].
func definition(x []float32, scale float64, hamming bool) ([]float32, int64) {
	var sines, cosines [512]float64
	for i := range sines {
		sines[i], cosines[i] = math.Sincos(2 * math.Pi * float64(i) / 512)
	}
	mel := func(f float64) float64 { return 1127 * math.Log(1+f/700) }
	low, step := mel(20), (mel(8000)-mel(20))/81
	count := 1 + (len(x)-400)/160
	out := make([]float64, 80*count)
	for t := range count {
		var frame [400]float64
		mean := 0.0
		for i := range frame {
			frame[i] = float64(x[t*160+i]) * scale
			mean += frame[i] / 400
		}
		for i := range frame {
			frame[i] -= mean
		}
		for i := 399; i > 0; i-- {
			frame[i] -= 0.97 * frame[i-1]
		}
		frame[0] *= 0.03
		for i := range frame {
			c := math.Cos(2 * math.Pi * float64(i) / 399)
			if hamming {
				frame[i] *= 0.54 - 0.46*c
			} else {
				frame[i] *= math.Pow(0.5-0.5*c, 0.85)
			}
		}
		var power [256]float64
		for k := range power {
			var re, im float64
			for i, v := range frame {
				re += v * cosines[k*i%512]
				im += v * sines[k*i%512]
			}
			power[k] = re*re + im*im
		}
		for b := range 80 {
			sum, left := 0.0, low+float64(b)*step
			for k, p := range power {
				m := mel(float64(k) * 31.25)
				sum += p * max(0, min((m-left)/step, (left+2*step-m)/step))
			}
			out[t*80+b] = math.Log(max(sum, 1.1920929e-07))
		}
	}
	features := make([]float32, len(out))
	for b := range 80 {
		mean := 0.0
		for t := range count {
			mean += out[t*80+b] / float64(count)
		}
		for t := range count {
			features[t*80+b] = float32(out[t*80+b] - mean)
		}
	}
	return features, int64(count)
}

func cosineOf(a, b []float32) float64 {
	var both, x, y float64
	for i := range a {
		both += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	return both / math.Sqrt(x*y)
}

// TestFamiliesOfEmbedders compares vectors with sherpa-onnx's, which approximates
// the features of training, and with vectors from the features' definition.
func TestFamiliesOfEmbedders(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	samples := make([]float32, 4*audio.SampleRate) // a hum in noise of varying loudness
	for i, level, hz := 0, 0.0, 0.0; i < len(samples); i++ {
		if i%3000 == 0 {
			level, hz = 0.2*r.Float64(), 100+400*r.Float64()
		}
		samples[i] = float32(level * (math.Sin(2*math.Pi*hz*float64(i)/audio.SampleRate) + 0.1*r.NormFloat64()))
	}
	sound, err := json.Marshal(samples)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		g       *onnxfile.Graph
		scale   float64
		hamming bool
		least   float64 // cosine to sherpa-onnx's
	}{
		// sherpa-onnx uses 20 to 7600 Hz and another window and does not
		// subtract the mean.
		"wespeaker": {randomSpeakers("feats", "embs", 192, map[string]string{"framework": "wespeaker", "normalize_samples": "0"}), 32768, true, 0.3},
		// sherpa-onnx uses 20 to 7600 Hz and mirrors the borders.
		"3d-speaker": {randomSpeakers("x", "embedding", 512, map[string]string{
			"framework": "3d-speaker", "normalize_samples": "1", "feature_normalize_type": "global-mean",
		}), 1, false, 0.95},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "model.onnx")
			require.NoError(t, os.WriteFile(path, test.g.Bytes(), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "samples.json"), sound, 0o600))
			m, err := openEmbedder(ort.Source{Path: path, Role: "embedder"}, models.Model{}, Options{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, m.Close()) }()
			assert.Equal(t, name, m.layout.contract)
			mine, err := m.Embed(t.Context(), audio.FromSamples(samples), []audio.Span{{Start: 0, End: len(samples)}})
			require.NoError(t, err)
			var theirs []float32
			modeltest.RunSherpa(t, &theirs, dir)
			features, frames := definition(samples, test.scale, test.hamming)
			out, err := m.session.Run(t.Context(), map[string]*ort.Tensor{m.layout.input: ort.NewFloat32([]int64{1, frames, 80}, features)}, m.layout.output)
			require.NoError(t, err)
			near, right := cosineOf(mine[0], theirs), cosineOf(mine[0], out[0].Float32())
			t.Logf("cosine to sherpa-onnx's vector %.4f, to that of the definition %.6f", near, right)
			assert.GreaterOrEqual(t, near, test.least)
			assert.GreaterOrEqual(t, right, 0.99999)
			modeltest.AssertFamilyRow(t, name, fmt.Sprint(len(theirs), " numbers"), false)
		})
	}
}
