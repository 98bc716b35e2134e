package networks

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
)

const shift = 400 // samples between two frames of the made-up networks

// loudest is a network whose frames name the class in their first sample: class
// c for a sample of c/10. Its score for class c is 20·(sample·10)·c − 10·c²,
// largest for the nearest c.
func loudest(classes int, metadata map[string]string) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 1, "T")
	one := func(v int64) string { return g.Const(onnxfile.Ints([]int64{1}, v)) }
	frames := g.Op("Slice", []string{"x", one(0), one(math.MaxInt64), one(2), one(shift)})
	frames = g.Op("Transpose", []string{frames}, onnxfile.AttrInts("perm", 0, 2, 1))
	weight, bias := make([]float32, classes), make([]float32, classes)
	for c := range classes {
		weight[c], bias[c] = float32(200*c), float32(-10*c*c)
	}
	scores := g.Op("MatMul", []string{frames, g.Const(onnxfile.Floats([]int64{1, int64(classes)}, weight...))})
	g.Node("Add", []string{scores, g.Const(onnxfile.Floats([]int64{int64(classes)}, bias...))}, []string{"y"})
	g.Output("y", onnxfile.Float32, "N", "F", classes)
	for k, v := range metadata {
		g.Meta(k, v)
	}
	return g
}

func segmenterSource(g *onnxfile.Graph) ort.Source {
	return ort.Source{Data: g.Bytes(), Name: "made-up.onnx", Role: "segmenter"}
}

var published = map[string]string{
	"model_type": "pyannote-segmentation-3.0", "num_speakers": "3", "powerset_max_classes": "2", "num_classes": "7",
	"sample_rate": "16000", "window_size": "32000", "receptive_field_size": "400", "receptive_field_shift": "400",
}

func TestPowerset(t *testing.T) {
	assert.Equal(t, []uint8{0, 1, 2, 4, 3, 5, 6}, powerset(3, 2), "no one, each, each pair: the order of pyannote/segmentation-3.0")
	assert.Equal(t, []uint8{0, 1, 2, 4, 8, 3, 5, 9, 6, 10, 12}, powerset(4, 2))
	assert.Equal(t, []uint8{0, 1, 2, 3}, powerset(2, 3))
}

func TestClassesBecomeSpeakers(t *testing.T) {
	needsRuntime(t)
	m, err := openSegmenter(segmenterSource(loudest(7, published)), Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	assert.Equal(t, 32000, m.Window())
	assert.Equal(t, 3, m.speakers())
	samples := make([]float32, 3*32000)
	for i := range samples {
		samples[i] = float32(i/shift%7) / 10
	}
	pcm := audio.FromSamples(samples)
	windows := []audio.Span{{Start: 0, End: 32000}, {Start: 400, End: 32400}, {Start: 2 * shift, End: 32000 + 2*shift}, {Start: 32000, End: 64000}, {Start: 64000, End: 96000}, {Start: 92000, End: 96000}}
	activities, err := m.Segment(t.Context(), pcm, windows)
	require.NoError(t, err)
	want := powerset(3, 2)
	for i, h := range activities {
		assert.Equal(t, shift, h.Shift)
		assert.Equal(t, 400, h.Field)
		require.GreaterOrEqual(t, len(h.Active), windows[i].Len()/shift)
		for f := range windows[i].Len() / shift {
			require.Equal(t, want[(windows[i].Start/shift+f)%7], h.Active[f], "window %d, frame %d", i, f)
		}
	}
	assert.LessOrEqual(t, len(activities[5].Active), 4000/shift+1, "frames end with a short window")

	_, err = m.Segment(t.Context(), pcm, []audio.Span{{Start: 0, End: 32001}})
	assert.ErrorContains(t, err, "longer than 32000 samples")
	_, err = m.Segment(t.Context(), pcm, []audio.Span{{Start: 90000, End: 97000}})
	assert.ErrorContains(t, err, "outside the recording of 96000 samples")
}

func TestSpeakersWithoutPowerset(t *testing.T) {
	needsRuntime(t)
	meta := map[string]string{"num_speakers": "3", "num_classes": "3", "window_size": "32000", "receptive_field_size": "400", "receptive_field_shift": "400"}
	m, err := openSegmenter(segmenterSource(loudest(3, meta)), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	assert.Equal(t, 3, m.speakers())
	samples := make([]float32, 32000)
	for i := range samples {
		samples[i] = 0.06 // scores 0, 2, −16
	}
	activities, err := m.Segment(t.Context(), audio.FromSamples(samples), []audio.Span{{Start: 0, End: 32000}})
	require.NoError(t, err)
	assert.Equal(t, uint8(0b010), activities[0].Active[5], "probabilities of 0.5 and above")
}

func TestOtherNetworksAreRejected(t *testing.T) {
	needsRuntime(t)
	with := func(key, value string) map[string]string {
		out := map[string]string{}
		for k, v := range published {
			out[k] = v
		}
		out[key] = value
		return out
	}
	flat := onnxfile.NewGraph().Input("x", onnxfile.Float32, "N", "T")
	flat.Node("Identity", []string{"x"}, []string{"y"})
	flat.Output("y", onnxfile.Float32, "N", "T")
	for _, c := range []struct {
		name  string
		graph *onnxfile.Graph
		want  string
	}{
		{"flat", flat, "expected a speaker segmentation network, one input [N,1,samples]"},
		{"classes", loudest(5, map[string]string{"num_speakers": "3"}), "7 powerset classes of 3 speakers, 2 at once, or 3 speakers"},
		{"rate", loudest(7, with("sample_rate", "8000")), "expected a sample rate of 16000, found 8000"},
		{"speakers", loudest(7, with("num_speakers", "9")), "at most 8 speakers"},
		{"number", loudest(7, with("receptive_field_shift", "-270")), `metadata receptive_field_shift: expected a positive whole number, found "-270"`},
		{"window", loudest(7, with("window_size", "100")), "windows of 1 to 60 s, found 100 samples"},
		{"frames", loudest(7, with("receptive_field_shift", "900")), "reach beyond the window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := openSegmenter(segmenterSource(c.graph), Options{})
			require.ErrorIs(t, err, models.ErrBroken)
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "segmenter model made-up.onnx")
		})
	}
}

// speakers returns the largest number of speakers that the network
// distinguishes in a window.
func (m *Segmenter) speakers() int {
	if m.classes == nil {
		return m.width
	}
	return bits.Len8(m.classes[len(m.classes)-1])
}
