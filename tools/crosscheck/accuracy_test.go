//go:build crosscheck && long

package crosscheck

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// recording is a line of the evaluation set's manifest.
type recording struct {
	File, Kind, Language, Text string
	Sentences                  []struct{ Text string }
}

func recordings(t *testing.T, dir string) []recording {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var list []recording
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recording
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		list = append(list, r)
	}
	require.NoError(t, lines.Err())
	return list
}

func (r recording) reference() string {
	var list []string
	for _, s := range r.Sentences {
		list = append(list, s.Text)
	}
	return strings.Join(list, " ")
}

var (
	words      = regexp.MustCompile(`[\p{L}\p{N}_'-]+`)
	characters = regexp.MustCompile(`[\p{L}\p{N}_]`)
)

// score counts errors and reference words (characters for Chinese), ignoring
// case and punctuation.
type score struct{ errors, length int }

func (s *score) add(reference, text, language string) {
	split := words
	if !spec.Spaced(language) {
		split = characters
	}
	a, b := split.FindAllString(strings.ToLower(reference), -1), split.FindAllString(strings.ToLower(text), -1)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	s.errors += row[len(b)]
	s.length += len(a)
}

func (s score) percent() float64 { return 100 * float64(s.errors) / float64(max(s.length, 1)) }

// TestErrorRate compares the error rates of the engine, on the speech found by
// the demo detector, and of whisper_full over the whole files. It also checks
// the invariants of every transcript.
func TestErrorRate(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "demo")
	e, b := both(t)
	m, ok := demo.Models().Role(models.RoleVAD)
	require.True(t, ok)
	detector, err := silero.Open(m, silero.Options{})
	require.NoError(t, err)
	defer detector.Close()

	plain, beam, greedy := map[string]*score{}, map[string]*score{}, map[string]*score{}
	var plainTime, beamTime, greedyTime time.Duration
	for _, r := range recordings(t, dir) {
		pcm, err := audio.Open(context.Background(), audio.File(filepath.Join(dir, r.File)), audio.Options{})
		require.NoError(t, err)
		speech, err := vad.Detect(context.Background(), detector, pcm, vad.DefaultOptions())
		require.NoError(t, err)
		language := r.Language
		if r.Kind == "nonspeech" {
			language = "en"
		}
		run := func(size int) *asr.Transcript {
			opt := asr.DefaultOptions()
			opt.Language, opt.BeamSize = language, size
			tr, err := e.Transcribe(context.Background(), pcm, speech, opt)
			require.NoError(t, err)
			return tr
		}
		start := time.Now()
		searched := run(5)
		beamTime += time.Since(start)
		sound(t, r.File, searched, speech)
		if r.Kind == "nonspeech" {
			assert.Empty(t, joined(searched), r.File)
			require.NoError(t, pcm.Close())
			continue
		}
		start = time.Now()
		quick := run(1)
		greedyTime += time.Since(start)
		start = time.Now()
		text, err := b.transcribe(pcm.Samples(0, pcm.Len()), language)
		require.NoError(t, err)
		plainTime += time.Since(start)
		for _, kind := range []string{r.Kind, r.Kind + " " + r.Language} {
			if plain[kind] == nil {
				plain[kind], beam[kind], greedy[kind] = &score{}, &score{}, &score{}
			}
			plain[kind].add(r.reference(), text, language)
			beam[kind].add(r.reference(), joined(searched), language)
			greedy[kind].add(r.reference(), joined(quick), language)
		}
		require.NoError(t, pcm.Close())
	}
	for kind := range plain {
		t.Logf("%-10s whisper_full %5.1f %%, engine greedy %5.1f %%, engine beam 5 %5.1f %% of %d", kind,
			plain[kind].percent(), greedy[kind].percent(), beam[kind].percent(), plain[kind].length)
	}
	t.Logf("time: whisper_full %.0f s, engine greedy %.0f s, engine beam 5 %.0f s (one thread each, non-speech in the last only)",
		plainTime.Seconds(), greedyTime.Seconds(), beamTime.Seconds())
	for _, kind := range []string{"short", "long"} {
		assert.LessOrEqual(t, greedy[kind].percent(), plain[kind].percent()+1, kind)
		assert.LessOrEqual(t, beam[kind].percent(), plain[kind].percent()+1, kind)
	}
}

// sound asserts that words go forward in time and lie in speech.
func sound(t *testing.T, name string, tr *asr.Transcript, speech []audio.Span) {
	t.Helper()
	within := func(at float64) bool {
		for _, s := range speech {
			if a, b := s.Seconds(); at >= a-1e-6 && at <= b+1e-6 {
				return true
			}
		}
		return false
	}
	before := 0.0
	for _, s := range tr.Segments {
		for _, w := range s.Words {
			assert.GreaterOrEqual(t, w.Start, before-1e-9, "%s: %s", name, w.Text)
			assert.GreaterOrEqual(t, w.End, w.Start+0.01-1e-9, "%s: %s", name, w.Text)
			assert.True(t, within(w.Start) && within(w.End), "%s: %s at %g to %g is outside the speech", name, w.Text, w.Start, w.End)
			before = w.End
		}
	}
}
