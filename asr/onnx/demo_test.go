package onnx

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
)

// wavSamples reads a clip of testdata: 16 kHz mono 16-bit WAV with a header of
// 44 bytes.
func wavSamples(t testing.TB, name string) []float32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.Equal(t, "RIFF", string(b[:4]))
	require.Equal(t, "data", string(b[36:40]))
	return int16Samples(b[44:])
}

// TestDemoModelWritesTheseClips checks held-out sentences in held-out synthetic
// voices, letter by letter.
func TestDemoModelWritesTheseClips(t *testing.T) {
	e := openDemo(t)
	assert.Equal(t, models.ContractZipformerCTC, e.contract)
	for language, want := range map[string]string{
		"en": "Can we meet next month?",
		"es": "Hoy es domingo, treinta de marzo.",
		"fr": "Mon chef travaille à l'aéroport.",
		"pt": "Como está o tempo em São Paulo?",
		"de": "Ich mag Kuchen und Kaffee.",
		"zh": "我的姐姐很高兴。",
	} {
		pcm := audio.FromSamples(wavSamples(t, language+".wav"))
		tr, err := e.Transcribe(context.Background(), pcm, []audio.Span{{Start: 0, End: pcm.Len()}}, asr.Options{Language: language})
		require.NoError(t, err)
		require.Len(t, tr.Segments, 1, language)
		s := tr.Segments[0]
		assert.Equal(t, want, s.Text)
		assert.Nil(t, s.Words)
		assert.Less(t, s.Start, 0.6)
		assert.Greater(t, s.End, pcm.Duration()-1)
		assert.LessOrEqual(t, s.End, pcm.Duration())
		assert.Greater(t, s.AvgLogProb, -0.5)
	}
}

func TestDemoModelWritesNothingInNoise(t *testing.T) {
	e := openDemo(t)
	r := rand.New(rand.NewPCG(1, 2))
	n := 4 * audio.SampleRate
	for name, f := range map[string]func(i int) float64{
		"silence":     func(int) float64 { return 0 },
		"white noise": func(int) float64 { return 0.05 * r.NormFloat64() },
		"tone":        func(i int) float64 { return 0.3 * math.Sin(2*math.Pi*440*float64(i)/audio.SampleRate) },
		"hum":         func(i int) float64 { return 0.2 * math.Sin(2*math.Pi*50*float64(i)/audio.SampleRate) },
	} {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(f(i))
		}
		for _, hotwords := range [][]string{nil, {"month", "Kuchen", "mercado", "我的"}} {
			tr, err := e.Transcribe(context.Background(), audio.FromSamples(x), []audio.Span{{Start: 0, End: n}}, asr.Options{Hotwords: hotwords})
			require.NoError(t, err)
			assert.Empty(t, tr.Segments, "%s, hotwords %v", name, hotwords)
		}
	}
}

// TestHotwordsOnDemoModel checks that a spoken hotword stays and that the text
// around it does not change.
func TestHotwordsOnDemoModel(t *testing.T) {
	e := openDemo(t)
	pcm := audio.FromSamples(wavSamples(t, "en.wav"))
	all := []audio.Span{{Start: 0, End: pcm.Len()}}
	for _, hotwords := range [][]string{{"Month"}, {"next month", "meeting"}, {"kangaroo", "Zürich"}, {" ", ""}} {
		tr, err := e.Transcribe(context.Background(), pcm, all, asr.Options{Language: "en", Hotwords: hotwords})
		require.NoError(t, err)
		require.Len(t, tr.Segments, 1)
		assert.Equal(t, "Can we meet next month?", tr.Segments[0].Text, hotwords)
	}
}

// noisy adds the same white noise, the given number of dB below the clip, at
// each call.
func noisy(x []float32, below float64) []float32 {
	var energy float64
	for _, v := range x {
		energy += float64(v) * float64(v)
	}
	level := math.Sqrt(energy/float64(len(x))) * math.Pow(10, -below/20)
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = v + float32(level*r.NormFloat64())
	}
	return out
}

// TestHotwordRestoresAWordOnDemoModel checks the text letter by letter: the
// last word spoken is "today", and in noise the model alone does not recognize
// it.
func TestHotwordRestoresAWordOnDemoModel(t *testing.T) {
	e := openDemo(t)
	pcm := audio.FromSamples(noisy(wavSamples(t, "hotword.wav"), 6))
	text := func(hotwords ...string) string {
		tr, err := e.Transcribe(context.Background(), pcm, []audio.Span{{Start: 0, End: pcm.Len()}}, asr.Options{Language: "en", Hotwords: hotwords})
		require.NoError(t, err)
		require.Len(t, tr.Segments, 1)
		return tr.Segments[0].Text
	}
	assert.Equal(t, "Do you have time to stay at home?", text())
	assert.Equal(t, "Do you have time to stay at home today?", text("today"))
	assert.NotContains(t, text("Budapest", "kitchen"), "Budapest", "unspoken words are not written")
}

// BenchmarkTranscribe measures one core on the clips of testdata, repeated to
// fill a minute with pauses between.
func BenchmarkTranscribe(b *testing.B) {
	e := openDemo(b)
	var x []float32
	var speech []audio.Span
	for len(x) < 60*audio.SampleRate {
		for _, l := range []string{"en", "es", "fr", "pt", "de", "zh"} {
			c := wavSamples(b, l+".wav")
			speech = append(speech, audio.Span{Start: len(x), End: len(x) + len(c)})
			x = append(append(x, c...), make([]float32, 12000)...)
		}
	}
	pcm := audio.FromSamples(x)
	for b.Loop() {
		if _, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Parallel: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/pcm.Duration(), "RTF")
}
