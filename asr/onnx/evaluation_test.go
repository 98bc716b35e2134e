package onnx

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

func skipWithoutRuntime(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// demoModel is the embedded recognizer.
func demoModel(t testing.TB) parts {
	t.Helper()
	m, err := demo.Models().Need(models.RoleOptimized)
	require.NoError(t, err)
	graph, err := m.Main().Bytes()
	require.NoError(t, err)
	file := func(part models.Part) sideFile {
		f, ok := m.File(part)
		require.True(t, ok, part)
		data, err := f.Bytes()
		require.NoError(t, err)
		return sideFile{Name: f.Name, Data: data}
	}
	return parts{
		Model: *m, ONNX: ort.Source{Data: graph, Name: m.Main().Name, Role: string(m.Role)},
		Tokens: file(models.PartTokens), LM: file(models.PartLM),
	}
}

func openDemo(t testing.TB) *Engine {
	t.Helper()
	return openMadeUp(t, demoModel(t))
}

// ffmpegSamples decodes any audio file.
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

// decodedSet caches the decoded evaluation set for all tests of a run.
var decodedSet []clip

func evaluationSet(t testing.TB) []clip {
	if decodedSet != nil {
		return decodedSet
	}
	dir := filepath.Join("..", "..", "testdata", "demo")
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
	decodedSet = out
	return out
}

// wordErrors counts errors in words (characters in Chinese), ignoring case and
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

// TestDemoModelOnEvaluationSet checks that the engine loses none of the model's
// accuracy. The figures are the model's own error rates in percent, measured by
// other code (sherpa-onnx, Python; whole short clips, long ones cut at pauses) without
// the language model. Short clips run whole, as in that measurement, and may not
// add a single word error in any language. All clips also run over the speech
// found by the embedded voice detector, as in the pipeline. Different cuts shift
// single words, so each language may have one more slip there: two words if the
// slip joins them ("derpotheke" for "die Apotheke"), one with the language
// model. The sum may have none. With the language model there are fewer errors.
func TestDemoModelOnEvaluationSet(t *testing.T) {
	clips := evaluationSet(t)
	alone := demoModel(t)
	alone.LM = sideFile{}
	detector := openDetector(t)
	total := map[string]int{}
	own := map[string]float64{
		"short:en": 1.9, "short:es": 8.3, "short:fr": 0.0, "short:pt": 0.0, "short:de": 11.5, "short:zh": 0.0,
		"long:en": 4.9, "long:zh": 4.5,
	}
	slip := map[string]float64{"whole clips": 0, "voice detector": 2, "language model": 1}
	hows := []string{"whole clips", "voice detector", "language model"}
	if testing.Short() {
		hows = hows[1:]
	}
	for _, how := range hows {
		t.Run(how, func(t *testing.T) {
			model := alone
			if how == "language model" {
				model = demoModel(t)
			}
			e := openMadeUp(t, model)
			errs, words := map[string]int{}, map[string]int{}
			var seconds float64
			var took time.Duration
			for _, c := range clips {
				pcm := audio.FromSamples(c.samples)
				speech := []audio.Span{{Start: 0, End: len(c.samples)}}
				if how == "whole clips" && c.Kind == "long" {
					continue
				}
				if how != "whole clips" {
					var err error
					speech, err = vad.Detect(context.Background(), detector, pcm, vad.DefaultOptions())
					require.NoError(t, err)
				}
				language := c.Language
				if c.Kind == "nonspeech" {
					language = ""
				}
				start := time.Now()
				tr, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Language: language, Parallel: 1})
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
				total[how] += n
				errs[key] += n
				words[key] += of
			}
			var most float64
			for _, key := range slices.Sorted(maps.Keys(errs)) {
				got := 100 * float64(errs[key]) / float64(words[key])
				t.Logf("%-9s %5.2f %% (model's own %.1f), %d of %d", key, got, own[key], errs[key], words[key])
				bound := math.Round(own[key] / 100 * float64(words[key]))
				most += bound
				assert.LessOrEqual(t, float64(errs[key]), bound+slip[how], key)
			}
			assert.LessOrEqual(t, float64(total[how]), most, "all languages")
			t.Logf("%d errors; real-time factor %.5f on one core over %.0f s", total[how], took.Seconds()/seconds, seconds)
		})
	}
	assert.Less(t, total["language model"], total["voice detector"])
}

func openDetector(t *testing.T) *silero.Model {
	m, err := published.Models().Need(models.RoleVAD)
	require.NoError(t, err)
	d, err := silero.Open(m, silero.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// TestSentenceTimes compares the start and end of the sentences in the long
// recordings, as found by the embedded voice detector, with the times at which the
// recordings were assembled.
func TestSentenceTimes(t *testing.T) {
	clips := evaluationSet(t)
	e := openDemo(t)
	detector := openDetector(t)
	var starts, ends []float64
	sentences := 0
	for _, c := range clips {
		if c.Kind != "long" {
			continue
		}
		pcm := audio.FromSamples(c.samples)
		speech, err := vad.Detect(context.Background(), detector, pcm, vad.DefaultOptions())
		require.NoError(t, err)
		tr, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Language: c.Language})
		require.NoError(t, err)
		sentences += len(c.Sentences)
		last := 0.0
		for _, s := range tr.Segments {
			assert.GreaterOrEqual(t, s.Start, last, "segments do not overlap")
			assert.Greater(t, s.End, s.Start)
			last = s.End
			for _, w := range c.Sentences {
				if math.Abs(s.Start-w.Start) < 0.5 && math.Abs(s.End-w.End) < 0.5 {
					starts = append(starts, math.Abs(s.Start-w.Start))
					ends = append(ends, math.Abs(s.End-w.End))
				}
			}
		}
	}
	mean := func(x []float64) float64 {
		var s float64
		for _, v := range x {
			s += v
		}
		return s / float64(len(x))
	}
	t.Logf("%d of %d sentences found; mean error of the start %.3f s, of the end %.3f s", len(starts), sentences, mean(starts), mean(ends))
	assert.GreaterOrEqual(t, float64(len(starts)), 0.9*float64(sentences))
	assert.Less(t, mean(starts), 0.1)
	assert.Less(t, mean(ends), 0.15)
}
