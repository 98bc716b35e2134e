//go:build real

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
)

const (
	realRecordings = "../testdata/real"
	realMeasured   = realRecordings + "/measured.json"
)

// realModels lists the published models with which the recordings are measured.
var realModels = []string{"whisper-base-q8_0", "whisper-tiny.en-q8_0"}

// TestReal measures published Whisper models on testdata/real: at most one
// error more in each recording than measured.json has (including words without
// speech), no repeated phrases, the detected languages, and the times of the
// words. Models that are not in $OTOGRAPH_REAL_MODELS (.cache/models) are
// skipped. OTOGRAPH_UPDATE=1 raises the values of measured.json to this
// machine's.
func TestReal(t *testing.T) {
	items, err := bench.Load(realRecordings + "/manifest.jsonl")
	require.NoError(t, err)
	measured := map[string]map[string]int{}
	data, err := os.ReadFile(realMeasured)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &measured))
	for _, name := range realModels {
		t.Run(name, func(t *testing.T) {
			p := openReal(t, name)
			english := strings.Contains(name, ".en")
			known := slices.DeleteFunc(slices.Clone(items), func(it bench.Item) bool {
				return english && it.Language != "en" && it.Language != ""
			})
			t.Run("words", func(t *testing.T) {
				found := realErrors(t, p, known)
				if os.Getenv("OTOGRAPH_UPDATE") != "" {
					raise(t, measured, name, found)
				}
				for file, errors := range found {
					assert.LessOrEqual(t, errors, measured[name][file]+1, file)
				}
			})
			t.Run("times", func(t *testing.T) { realTimes(t, p, known) })
			if !english {
				t.Run("languages", func(t *testing.T) { realLanguages(t, p, known) })
			}
		})
	}
}

// TestRealReadme checks README's excerpt of make demo: the embedded networks
// and Whisper base find the words, the speakers and the sound in it. Times and
// confidences may differ between processors.
func TestRealReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "<!-- demo output")
	require.True(t, ok)
	_, rest, _ = strings.Cut(rest, "```\n")
	excerpt, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	set, err := library.Load{
		Files:    map[models.Role]string{models.RoleStandard: pulled(t, "whisper-base-q8_0", "*.bin")},
		Fallback: published.Models(),
	}.Open()
	require.NoError(t, err)
	p, err := otograph.Open(set)
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	res, err := p.Run(t.Context(), otograph.File("../testdata/meeting.flac"), otograph.Options{})
	require.NoError(t, err)
	assert.Equal(t, 2, res.NumSpeakers)
	var lines []string
	for _, s := range res.Segments {
		lines = append(lines, s.Speaker+"  "+strings.TrimSpace(s.Text))
	}
	for _, e := range res.AudioEvents {
		lines = append(lines, "sound  "+e.Class)
	}
	all := strings.Join(lines, "\n")
	for line := range strings.Lines(strings.TrimSpace(excerpt)) {
		who := strings.Fields(line)[3]
		_, text, _ := strings.Cut(line, who)
		if who == "sound" {
			text = strings.Fields(strings.Trim(strings.TrimSpace(text), "[]"))[0]
		}
		assert.Contains(t, all, who+"  "+strings.TrimSpace(text))
	}
}

// raise writes measured.json with the larger of its values and found, because
// kernels of different processors differ in a few words.
func raise(t *testing.T, measured map[string]map[string]int, name string, found map[string]int) {
	t.Helper()
	if measured[name] == nil {
		measured[name] = map[string]int{}
	}
	for file, errors := range found {
		measured[name][file] = max(measured[name][file], errors)
	}
	data, err := json.MarshalIndent(measured, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(realMeasured, append(data, '\n'), 0o666))
}

// openReal opens a pipeline with a published Whisper model and the published
// voice detector.
func openReal(t *testing.T, name string) *otograph.Pipeline {
	t.Helper()
	set, err := library.Load{Files: map[models.Role]string{
		models.RoleStandard: pulled(t, name, "*.bin"),
		models.RoleVAD:      pulled(t, "silero-v6.2.1", "*.onnx"),
	}}.Open()
	require.NoError(t, err)
	p, err := otograph.Open(set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// pulled returns the file of a model in $OTOGRAPH_REAL_MODELS, or skips the
// test.
func pulled(t *testing.T, name, pattern string) string {
	t.Helper()
	dir := os.Getenv("OTOGRAPH_REAL_MODELS")
	if dir == "" {
		dir = "../.cache/models"
	}
	for _, folder := range []string{name, name + "-repackaged"} {
		found, err := filepath.Glob(filepath.Join(dir, folder, pattern))
		require.NoError(t, err)
		if len(found) > 0 {
			return found[0]
		}
	}
	t.Skipf("%s is not in %s: `make test-real` pulls it where it can", name, dir)
	return ""
}

// transcribeReal transcribes with the standard tier alone; an empty language is
// detected.
func transcribeReal(t *testing.T, p *otograph.Pipeline, src otograph.Source, language string) *otograph.Result {
	t.Helper()
	o := otograph.Options{
		Optimize: new(false), EnableDiarize: new(false), EnableAudioEvents: new(false),
		TimestampLevel: new(otograph.TimestampLevel(otograph.TimestampWord)),
	}
	if language != "" {
		o.ASRLanguage = &language
	}
	res, err := p.Run(t.Context(), src, o)
	require.NoError(t, err)
	return res
}

func textOf(res *otograph.Result) string {
	var out []string
	for _, s := range res.Segments {
		out = append(out, s.Text)
	}
	return strings.Join(out, "\n")
}

// realErrors counts the errors of each recording, in words, or in characters
// for languages that are written without spaces, and checks that no phrase is
// repeated.
func realErrors(t *testing.T, p *otograph.Pipeline, items []bench.Item) map[string]int {
	t.Helper()
	found := map[string]int{}
	var all bench.WordErrors
	for _, item := range items {
		text := textOf(transcribeReal(t, p, otograph.File(item.Path), item.Language))
		e := bench.CompareWords(bench.Units(item.Language, *item.Text), bench.Units(item.Language, text))
		all = all.Add(e)
		found[item.Name] = e.Errors()
		t.Logf("%-26s %3d of %3d", item.Name, e.Errors(), e.Reference)
		assert.LessOrEqual(t, longestLoop(text), 5, "%s: a phrase is said again and again: %s", item.Name, text)
	}
	t.Logf("%d errors of %d words, %.1f %%", all.Errors(), all.Reference, 100*all.Rate())
	return found
}

// longestLoop returns the number of words of the longest run in which a phrase
// of 1 to 8 words occurs at least three times in a row.
func longestLoop(text string) (longest int) {
	words := strings.Fields(strings.ToLower(text))
	for n := 1; n <= 8; n++ {
		for i := 0; i+2*n <= len(words); i++ {
			times := 1
			for i+(times+1)*n <= len(words) && slices.Equal(words[i:i+n], words[i+times*n:i+(times+1)*n]) {
				times++
			}
			if times > 2 {
				longest = max(longest, times*n)
			}
		}
	}
	return longest
}

// realTimes compares the starts of words with the aligner's, and checks that no
// word covers a pause or has no length.
func realTimes(t *testing.T, p *otograph.Pipeline, items []bench.Item) {
	var all bench.TimeErrors
	for _, item := range items {
		if item.Words == nil {
			continue
		}
		var words []bench.TimedText
		for _, s := range transcribeReal(t, p, otograph.File(item.Path), item.Language).Segments {
			for _, w := range s.Words {
				assert.Greater(t, w.End, w.Start, "%s: %q has no length", item.Name, w.Word)
				assert.False(t, w.Interpolated, "%s: the times of %q are not measured", item.Name, w.Word)
				words = append(words, bench.TimedText{Start: w.Start, End: w.End, Text: w.Word})
			}
		}
		for i := range len(item.Words) - 1 {
			quiet, again := item.Words[i].End, item.Words[i+1].Start
			if again-quiet < 0.3 {
				continue
			}
			for _, w := range words {
				assert.False(t, w.Start < quiet && w.End > again, "%s: %q lies over the pause from %.2f to %.2f", item.Name, w.Text, quiet, again)
			}
		}
		times, ok := bench.ScoreWordTimes(item.Language, item.Words, words)
		require.True(t, ok)
		all.Add(times)
	}
	require.NotEmpty(t, all.Starts)
	t.Logf("%d words: starts off by %.0f ms on the mean, %.0f %% within 50 ms", len(all.Starts), 1000*all.MeanStart(), 100*all.Within(0.05))
	assert.LessOrEqual(t, all.MeanStart(), 0.06)
	assert.GreaterOrEqual(t, all.Within(0.05), 0.6)
}

// realLanguages checks that the language of every recording is detected; of the
// recordings of a word or two, one may fail.
func realLanguages(t *testing.T, p *otograph.Pipeline, items []bench.Item) {
	var wrong []string
	for _, item := range items {
		if item.Language == "" {
			continue
		}
		if res := transcribeReal(t, p, otograph.File(item.Path), ""); res.Language != item.Language {
			wrong = append(wrong, fmt.Sprintf("%s: %s, found %s", item.Name, item.Language, res.Language))
		}
	}
	assert.LessOrEqual(t, len(wrong), 1, strings.Join(wrong, "; "))
}
