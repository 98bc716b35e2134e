//go:build families

package networks

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

func randomTensor(r *rand.Rand, scale float64, shape ...int64) onnxfile.Tensor {
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

// randomSegmenter has random weights and the inputs, outputs and metadata of
// k2-fsa's export of pyannote/segmentation-3.0: filters over 991 samples every
// 270, their mean levels over 31 frames, a hidden layer, seven powerset
// classes.
func randomSegmenter(r *rand.Rand) *onnxfile.Graph {
	const filters, hidden = 16, 24
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 1, "T")
	x := g.Op("Conv", []string{"x", g.Const(randomTensor(r, 0.3, filters, 1, 991))}, onnxfile.AttrInts("kernel_shape", 991), onnxfile.AttrInts("strides", 270))
	x = g.Op("Log", []string{g.Op("Add", []string{g.Op("Abs", []string{x}), g.Const(onnxfile.Floats(nil, 1e-3))})})
	x = g.Op("AveragePool", []string{x}, onnxfile.AttrInts("kernel_shape", 31), onnxfile.AttrInts("pads", 15, 15))
	x = g.Op("Conv", []string{x, g.Const(randomTensor(r, 0.5, hidden, filters, 1))}, onnxfile.AttrInts("kernel_shape", 1))
	x = g.Op("Transpose", []string{g.Op("Tanh", []string{x})}, onnxfile.AttrInts("perm", 0, 2, 1))
	y := g.Op("MatMul", []string{x, g.Const(randomTensor(r, 1, hidden, 7))})
	g.Node("LogSoftmax", []string{y}, []string{"y"}, onnxfile.AttrInt("axis", -1))
	g.Output("y", onnxfile.Float32, "N", "F", 7)
	for k, v := range map[string]string{
		"model_type": "pyannote-segmentation-3.0", "version": "1", "num_speakers": "3", "powerset_max_classes": "2", "num_classes": "7",
		"sample_rate": "16000", "window_size": "160000", "receptive_field_size": "991", "receptive_field_shift": "270",
	} {
		g.Meta(k, v)
	}
	return g
}

// randomEmbedder returns a small network that sherpa-onnx takes for
// WeSpeaker's.
func randomEmbedder(r *rand.Rand) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("feats", onnxfile.Float32, "B", "T", 80)
	mean := g.Op("ReduceMean", []string{"feats"}, onnxfile.AttrInts("axes", 1), onnxfile.AttrInt("keepdims", 0))
	g.Node("MatMul", []string{mean, g.Const(randomTensor(r, 1, 80, 32))}, []string{"embs"})
	g.Output("embs", onnxfile.Float32, "B", 32)
	for k, v := range map[string]string{"framework": "wespeaker", "normalize_samples": "0", "language": "English", "url": "x", "comment": "x", "sample_rate": "16000", "output_dim": "32"} {
		g.Meta(k, v)
	}
	return g
}

// hum returns noise with hums that swell and fade.
func hum(r *rand.Rand, seconds int) []float32 {
	out := make([]float32, seconds*audio.SampleRate)
	for i, level, hz := 0, 0.0, 0.0; i < len(out); i++ {
		if i%9000 == 0 {
			level, hz = 0.4*r.Float64()*r.Float64(), 80+1500*r.Float64()
		}
		out[i] = float32(level*math.Sin(2*math.Pi*hz*float64(i)/audio.SampleRate) + (0.01+0.2*level)*r.NormFloat64())
	}
	return out
}

type sherpaTurn struct {
	Start, End float64
	Speaker    int
}

type sherpaAnswer []struct {
	Turns        []sherpaTurn
	Milliseconds float64
}

// write stores recordings and graphs in the files that testdata/sherpa.js
// reads.
func write(t *testing.T, dir string, segmenter, embedder []byte, recordings ...[]float32) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.onnx"), segmenter, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "embedder.onnx"), embedder, 0o600))
	for i, samples := range recordings {
		text, err := json.Marshal(samples)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("samples%d.json", i)), text, 0o600))
	}
}

// runs returns the stretches of frames [first, end) of a local speaker, without
// the last frame: sherpa-onnx ends turns at the end of the recording before it.
func runs(a diarize.Activity, speaker int) (out [][2]int) {
	for i, who := range a.Active[:len(a.Active)-1] {
		if who>>speaker&1 == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1][1] == i {
			out[n-1][1]++
		} else {
			out = append(out, [2]int{i, i + 1})
		}
	}
	return out
}

// TestFamiliesOfSegmenters compares turns with sherpa-onnx's, on recordings of one
// window with as many clusters as local speakers, so that clustering changes
// nothing.
func TestFamiliesOfSegmenters(t *testing.T) {
	const windows = 6
	r := rand.New(rand.NewPCG(31, 4))
	graph, embedder := randomSegmenter(r), randomEmbedder(r)
	m, err := openSegmenter(ort.Source{Data: graph.Bytes(), Name: "model.onnx", Role: "segmenter"}, Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	var recordings [][]float32
	var activities []diarize.Activity
	var speakers []string
	frames, overlapped := 0, 0
	for len(recordings) < windows {
		samples := hum(r, 10)
		a, err := m.Segment(t.Context(), audio.FromSamples(samples), []audio.Span{{Start: 0, End: len(samples)}})
		require.NoError(t, err)
		var alone [3]int
		both := 0
		for _, who := range a[0].Active {
			switch bits.OnesCount8(who) {
			case 1:
				alone[bits.TrailingZeros8(who)]++
			case 2:
				both++
			}
		}
		if slices.Min(alone[:]) < 10 {
			continue // sherpa-onnx leaves out local speakers of fewer frames alone
		}
		recordings, activities, speakers = append(recordings, samples), append(activities, a[0]), append(speakers, "3")
		frames, overlapped = frames+len(a[0].Active), overlapped+both
	}
	dir := t.TempDir()
	write(t, dir, graph.Bytes(), embedder.Bytes(), recordings...)
	var theirs sherpaAnswer
	modeltest.RunSherpa(t, &theirs, dir, speakers...)
	turns := 0
	for i, a := range activities {
		var mine, other [][][2]int
		for s := range 3 {
			mine = append(mine, runs(a, s))
			var list [][2]int
			for _, turn := range theirs[i].Turns {
				if turn.Speaker == s {
					frame := func(at float64) int {
						f := (at*audio.SampleRate - float64(a.Field)/2) / float64(a.Shift)
						require.InDelta(t, math.Round(f), f, 0.05)
						return int(math.Round(f))
					}
					list = append(list, [2]int{frame(turn.Start), frame(turn.End)})
				}
			}
			slices.SortFunc(list, func(x, y [2]int) int { return x[0] - y[0] })
			other, turns = append(other, list), turns+len(list)
		}
		assert.ElementsMatch(t, mine, other, "window %d", i)
	}
	t.Logf("%d windows, %d frames, %d with two speakers, %d turns", windows, frames, overlapped, turns)
	modeltest.AssertFamilyRow(t, "pyannote segmentation 3.0", fmt.Sprint(frames, " frames, ", turns, " turns"), true)
}

// TestFamiliesSpeed reports the CPU time per minute of sound, alternating with
// sherpa-onnx, with the demo model in both, one thread each.
func TestFamiliesSpeed(t *testing.T) {
	const rounds = 3
	model, err := demo.Models().Need(models.RoleSegmenter)
	require.NoError(t, err)
	data, err := model.Main().Bytes()
	require.NoError(t, err)
	m, err := OpenSegmenter(model, Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	r := rand.New(rand.NewPCG(31, 5))
	samples := hum(r, 60)
	dir := t.TempDir()
	write(t, dir, data, randomEmbedder(r).Bytes(), samples)
	pcm := audio.FromSamples(samples)
	var windows []audio.Span // every half window, as in diarize.Embed
	for at := 0; at+m.Window() <= len(samples); at += m.Window() / 2 {
		windows = append(windows, audio.Span{Start: at, End: at + m.Window()})
	}
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	chunks := float64((len(samples)-m.Window())/(m.Window()/10) + 1) // every tenth of a window
	for range rounds {
		before := used()
		_, err := m.Segment(t.Context(), pcm, windows)
		require.NoError(t, err)
		mine := float64((used() - before).Microseconds()) / 1000
		var theirs sherpaAnswer
		modeltest.RunSherpa(t, &theirs, dir, "2")
		other := theirs[0].Milliseconds
		t.Logf("a minute: %.0f ms, sherpa-onnx with its embedding and clustering %.0f ms: %.2f ×; a window: %.2f and %.2f ms: %.2f ×",
			mine, other, other/mine, mine/float64(len(windows)), other/chunks, other/chunks/(mine/float64(len(windows))))
	}
}
