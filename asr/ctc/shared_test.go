package ctc

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/native"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

func sharedFolder(t testing.TB) string {
	dir := os.Getenv("OTOGRAPH_SHARED")
	if dir == "" {
		t.Skip("OTOGRAPH_SHARED is not set: the whole evaluation set is not in the repository")
	}
	return dir
}

func skipWithoutRuntime(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// demoModel is the embedded recogniser.
func demoModel(t testing.TB) Model {
	t.Helper()
	m, err := demo.Models().Need(models.RoleOptimized)
	require.NoError(t, err)
	graph, err := m.Main().Bytes()
	require.NoError(t, err)
	f, _ := m.File(models.PartTokens)
	tokens, err := f.Bytes()
	require.NoError(t, err)
	return Model{
		Name: m.Name, ONNX: ort.Source{Data: graph, Name: m.Main().Name, Role: string(m.Role)},
		Tokens: File{Name: f.Name, Data: tokens}, Contract: m.Contract, Languages: m.Languages, WindowSeconds: m.WindowSeconds,
	}
}

func openDemo(t testing.TB) *Engine {
	t.Helper()
	e, err := Open(demoModel(t), Options{})
	skipWithoutRuntime(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

// ffmpegSamples decodes any file.
func ffmpegSamples(t testing.TB, path string) []float32 {
	t.Helper()
	raw, err := exec.Command("ffmpeg", "-v", "error", "-nostdin", "-i", path, "-f", "s16le", "-ar", "16000", "-ac", "1", "-").Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("ffmpeg is not installed")
	}
	require.NoError(t, err)
	return int16Samples(raw)
}

func int16Samples(raw []byte) []float32 {
	x := make([]float32, len(raw)/2)
	for i := range x {
		x[i] = float32(int16(binary.LittleEndian.Uint16(raw[2*i:]))) / 32768
	}
	return x
}

type clip struct {
	File, Kind, Text, Language, Voice, Condition string
	Sentences                                    []struct {
		Start, End float64
		Text       string
	}
	samples []float32
}

func evaluationSet(t testing.TB) []clip {
	dir := filepath.Join(sharedFolder(t), "testdata", "demo")
	f, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var out []clip
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var c clip
		require.NoError(t, json.Unmarshal(s.Bytes(), &c))
		c.samples = ffmpegSamples(t, filepath.Join(dir, c.File))
		out = append(out, c)
	}
	require.NoError(t, s.Err())
	return out
}

// wordErrors counts word (Chinese: character) errors without case and
// punctuation.
func wordErrors(ref, hyp, language string) (errs, n int) {
	f := func(s string) []string {
		if language == "zh" {
			var out []string
			for _, r := range s {
				if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
					out = append(out, string(r))
				}
			}
			return out
		}
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' && r != '-'
		})
	}
	a, b := f(ref), f(hyp)
	d := make([]int, len(b)+1)
	for j := range d {
		d[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := d[0]
		d[0] = i
		for j := 1; j <= len(b); j++ {
			c := diag
			if a[i-1] != b[j-1] {
				c++
			}
			diag = d[j]
			d[j] = min(d[j]+1, d[j-1]+1, c)
		}
	}
	return d[len(b)], len(a)
}

// energySpans cuts a recording at pauses by energy, as the model's own
// evaluation did.
func energySpans(x []float32) []audio.Span {
	const h = audio.SampleRate / 50
	var e []float64
	for i := 0; i+h < len(x); i += h {
		var s float64
		for _, v := range x[i : i+h] {
			s += float64(v) * float64(v)
		}
		e = append(e, s/h)
	}
	sorted := append([]float64(nil), e...)
	for i := range sorted { // insertion is enough for a few thousand values
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	quiet := sorted[len(sorted)/10]
	on := func(i int) bool { return e[i] > max(9e-6, 6.25*quiet) }
	var out []audio.Span
	for i := 0; i < len(e); {
		if !on(i) {
			i++
			continue
		}
		j, q := i, 0
		for j < len(e) && q < 15 {
			if q++; on(j) {
				q = 0
			}
			j++
		}
		s := audio.Span{Start: max(0, i-8) * h, End: min(len(x), (j-q+12)*h)}
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			mid := (s.Start + out[n-1].End) / 2
			out[n-1].End, s.Start = mid, mid
		}
		out = append(out, s)
		i = j
	}
	return out
}

func (c clip) speech() []audio.Span {
	if c.Kind == "long" {
		return energySpans(c.samples)
	}
	return []audio.Span{{Start: 0, End: len(c.samples)}}
}

func textOf(t *asr.Transcript, language string) string {
	sep := " "
	if language == "zh" {
		sep = ""
	}
	var s []string
	for _, g := range t.Segments {
		s = append(s, g.Text)
	}
	return strings.Join(s, sep)
}

// TestDemoModelOnEvaluationSet: the engine may not cost the model any accuracy.
// The bounds are the model's own error rates in percent.
func TestDemoModelOnEvaluationSet(t *testing.T) {
	clips := evaluationSet(t)
	e := openDemo(t)
	own := map[string]float64{
		"short:en": 7.0, "short:es": 4.9, "short:fr": 11.6, "short:pt": 2.3, "short:de": 2.6, "short:zh": 2.9,
		"long:en": 4.4, "long:es": 2.6, "long:de": 0.8, "long:zh": 11.5,
	}
	errs, words := map[string]int{}, map[string]int{}
	var seconds float64
	var took time.Duration
	for _, c := range clips {
		pcm := audio.FromSamples(c.samples)
		language := c.Language
		if c.Kind == "nonspeech" {
			language = ""
		}
		start := time.Now()
		tr, err := e.Transcribe(context.Background(), pcm, c.speech(), asr.Options{Language: language, Parallel: 1})
		took += time.Since(start)
		seconds += pcm.Duration()
		require.NoError(t, err)
		text := textOf(tr, c.Language)
		if c.Kind == "nonspeech" {
			assert.Empty(t, text, c.File)
			continue
		}
		n, of := wordErrors(c.Text, text, c.Language)
		key := c.Kind + ":" + c.Language
		errs[key] += n
		words[key] += of
		if n > 0 && os.Getenv("OTOGRAPH_SHOW") != "" {
			t.Logf("%s %s\n  %s\n  %s", c.File, c.Voice, c.Text, text)
		}
	}
	for key, want := range own {
		got := 100 * float64(errs[key]) / float64(words[key])
		t.Logf("%-9s %5.2f %% (model's own %.1f)", key, got, want)
		assert.LessOrEqual(t, got, want+0.06, key)
	}
	t.Logf("real-time factor %.5f on one core over %.0f s", took.Seconds()/seconds, seconds)
}
