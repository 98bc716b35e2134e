package tag_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/events/tag"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/spec"
)

// shared is the folder of the recordings and models that are not in the
// repository.
func shared(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("OTOGRAPH_SHARED")
	if folder == "" {
		t.Skip("OTOGRAPH_SHARED is not set: no further recordings")
	}
	return folder
}

func needsRuntime(t testing.TB) {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
}

func demoTagger(t testing.TB, threads int) *tag.Model {
	t.Helper()
	needsRuntime(t)
	m, err := demo.Models().Need(models.RoleTagger)
	require.NoError(t, err)
	tagger, err := tag.Open(m, tag.Options{Threads: threads})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, tagger.Close()) })
	return tagger
}

func open(t testing.TB, path string) *audio.PCM {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{MinBytes: 1})
	if errors.Is(err, audio.ErrDecoderMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pcm.Close()) })
	return pcm
}

// score collects all frames.
func score(t testing.TB, m *tag.Model, pcm *audio.PCM) (frames [][]float32) {
	t.Helper()
	require.NoError(t, m.Scores(t.Context(), pcm, func(i int, s []float32) error {
		require.Equal(t, len(frames), i)
		require.Len(t, s, spec.NumEventClasses)
		frames = append(frames, slices.Clone(s))
		return nil
	}))
	return frames
}

// truth is one line of events.jsonl: a sound that is in a clip.
type truth struct {
	File       string
	Class      string
	Index      int
	Also       []int
	Start, End float64
}

func readTruth(t testing.TB, path string) (lines []truth) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		var line truth
		require.NoError(t, json.Unmarshal(s.Bytes(), &line))
		lines = append(lines, line)
	}
	require.NotEmpty(t, lines)
	return lines
}

// tally scores the events detected in clips against the truth by seconds, as is
// usual for sound event detection (A. Mesaros et al., "Metrics for polyphonic
// sound event detection", 2016): in each second of a clip, each class in the
// truth is present or not, and detected or not. Wider classes that are also
// true do not count, and neither does silence between sounds. It returns the F1
// of all classes together and the mean of the F1 of each class (the "micro" and
// "macro" averages).
func tally(t testing.TB, m *tag.Model, folder string, lines []truth) (all, mean float64) {
	t.Helper()
	type counts struct{ hit, missed, wrong int }
	f1 := func(c counts) float64 { return 2 * float64(c.hit) / float64(2*c.hit+c.missed+c.wrong) }
	byClass := map[int]*counts{} // of each class in the truth
	clips := map[string][]truth{}
	var order []string
	for _, l := range lines {
		byClass[l.Index] = new(counts)
		if clips[l.File] == nil {
			order = append(order, l.File)
		}
		clips[l.File] = append(clips[l.File], l)
	}
	silence, ok := spec.LookupEventClass("Silence")
	require.True(t, ok)
	heard := 0
	for _, file := range order {
		pcm := open(t, filepath.Join(folder, file))
		found, err := events.Detect(t.Context(), m, pcm, events.DefaultOptions())
		require.NoError(t, err)
		for _, l := range clips[file] {
			if slices.ContainsFunc(found, func(e events.Event) bool {
				return e.Class.Index == l.Index && e.Start < l.End && e.End > l.Start
			}) {
				heard++
			} else {
				t.Logf("%s: %s at %.1f-%.1f was not heard", file, l.Class, l.Start, l.End)
			}
		}
		for second := 0.5; second < pcm.Duration(); second++ {
			there, wider, now := map[int]bool{}, map[int]bool{}, map[int]bool{}
			for _, l := range clips[file] {
				if l.Start <= second && second < l.End {
					there[l.Index] = true
					for _, w := range l.Also {
						wider[w] = true
					}
				}
			}
			for _, e := range found {
				if e.Start <= second && second < e.End {
					now[e.Class.Index] = true
				}
			}
			for class, c := range byClass {
				switch {
				case there[class] && now[class]:
					c.hit++
				case there[class]:
					c.missed++
				case now[class] && !wider[class] && class != silence.Index:
					c.wrong++
				}
			}
		}
	}
	var sum counts
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		c := *byClass[class]
		sum.hit, sum.missed, sum.wrong = sum.hit+c.hit, sum.missed+c.missed, sum.wrong+c.wrong
		mean += f1(c) / float64(len(byClass))
		t.Logf("%3d %+v: F1 %.3f", class, c, f1(c))
	}
	t.Logf("%d clips: %d of %d sounds heard; by seconds %+v: F1 %.3f, mean over %d classes %.3f", len(order), heard, len(lines), sum, f1(sum), len(byClass), mean)
	return f1(sum), mean
}

// TestDemoTaggerOnClips runs a few clips in the repository.
func TestDemoTaggerOnClips(t *testing.T) {
	all, mean := tally(t, demoTagger(t, 1), "testdata", readTruth(t, "testdata/events.jsonl"))
	assert.GreaterOrEqual(t, all, 0.8)
	assert.GreaterOrEqual(t, mean, 0.8)
}

func TestDemoTaggerOnAllClips(t *testing.T) {
	folder := filepath.Join(shared(t), "testdata", "events")
	lines := readTruth(t, filepath.Join(folder, "events.jsonl"))
	all, mean := tally(t, demoTagger(t, 2), folder, lines)
	assert.GreaterOrEqual(t, all, 0.8)
	assert.GreaterOrEqual(t, mean, 0.8)
}

// TestThreadsDoNotChangeScores checks that pieces are computed in parallel and
// yielded in order.
func TestThreadsDoNotChangeScores(t *testing.T) {
	long := make([]float32, 100*audio.SampleRate+777)
	seed := uint32(7)
	for i := range long {
		seed = seed*1664525 + 1013904223
		long[i] = (float32(seed>>8)/(1<<24) - 0.5) * float32(i%50000) / 50000
	}
	pcm := audio.FromSamples(long)
	one := score(t, demoTagger(t, 1), pcm)
	assert.Equal(t, one, score(t, demoTagger(t, 3), pcm))
	assert.Len(t, one, 1+(len(long)-15600+7679)/7680)
}

func TestScoresStopsOnErrors(t *testing.T) {
	m := demoTagger(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	err := m.Scores(ctx, audio.FromSamples(make([]float32, 60*audio.SampleRate)), func(int, []float32) error {
		cancel()
		return nil
	})
	assert.ErrorIs(t, err, context.Canceled)
	enough := errors.New("enough")
	err = m.Scores(t.Context(), audio.FromSamples(make([]float32, 5*audio.SampleRate)), func(i int, _ []float32) error {
		assert.Zero(t, i)
		return enough
	})
	assert.ErrorIs(t, err, enough)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	assert.ErrorIs(t, m.Scores(t.Context(), audio.FromSamples(make([]float32, 100)), nil), tag.ErrClosed)
}

// yamnet is the published network (log-mel patches).
func yamnet(t *testing.T) *tag.Model {
	needsRuntime(t)
	file, err := library.OpenFile(models.RoleTagger, filepath.Join(shared(t), "models", "real", "yamnet.onnx"))
	require.NoError(t, err)
	m, err := tag.Open(file, tag.Options{Threads: 2})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	assert.Equal(t, models.ContractYAMNetPatches, file.Contract)
	return m
}

// TestYAMNetAgreesWithReference compares with stored scores of the published
// network under another front end and runtime.
func TestYAMNetAgreesWithReference(t *testing.T) {
	folder := filepath.Join(shared(t), "testdata", "real")
	m := yamnet(t)
	files, err := filepath.Glob(filepath.Join(folder, "yamnet", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 12)
	var worst float64
	for _, file := range files {
		var ref struct {
			Recording string      `json:"recording"`
			Patches   int         `json:"patches"`
			Mean      []float64   `json:"mean_scores"`
			First     [][]float64 `json:"scores_first_two_patches"`
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &ref))
		frames := score(t, m, open(t, filepath.Join(folder, ref.Recording)))
		require.Len(t, frames, ref.Patches, ref.Recording)
		compare := func(want, got float64) {
			assert.InDelta(t, want, got, 1e-3, ref.Recording)
			worst = max(worst, want-got, got-want)
		}
		for i, row := range ref.First {
			for c, want := range row {
				compare(want, float64(frames[i][c]))
			}
		}
		for c, want := range ref.Mean {
			var mean float64
			for _, f := range frames {
				mean += float64(f[c]) / float64(len(frames))
			}
			compare(want, mean)
		}
	}
	t.Logf("largest difference to the references: %.2g", worst)
}

// TestYAMNetOnRealClips checks that the sound in a recording ranks first.
func TestYAMNetOnRealClips(t *testing.T) {
	folder := filepath.Join(shared(t), "testdata", "real")
	m := yamnet(t)
	f, err := os.Open(filepath.Join(folder, "truth.jsonl"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	clips := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var line struct {
			File   string
			Events []string
		}
		require.NoError(t, json.Unmarshal(s.Bytes(), &line))
		if len(line.Events) == 0 {
			continue
		}
		opt := events.DefaultOptions()
		opt.Threshold = 0.1
		found, err := events.Detect(t.Context(), m, open(t, filepath.Join(folder, line.File)), opt)
		require.NoError(t, err)
		slices.SortFunc(found, func(a, b events.Event) int {
			if a.Peak > b.Peak {
				return -1
			}
			return 1
		})
		var names []string
		rank := -1
		for _, e := range found {
			if e.Class.DisplayName == "Silence" || slices.Contains(names, e.Class.DisplayName) {
				continue
			}
			if names = append(names, e.Class.DisplayName); rank < 0 && slices.Contains(line.Events, e.Class.DisplayName) {
				rank = len(names)
			}
		}
		t.Logf("%s: %v comes at rank %d of %v", line.File, line.Events, rank, names[:min(5, len(names))])
		// At most second: a wider class may come first (Animal before Chicken,
		// rooster).
		assert.Contains(t, []int{1, 2}, rank, line.File)
		clips++
	}
	assert.Equal(t, 10, clips)
}

// BenchmarkDemoTagger processes a minute of sound on one core.
func BenchmarkDemoTagger(b *testing.B) {
	m := demoTagger(b, 1)
	pcm := audio.FromSamples(make([]float32, 60*audio.SampleRate))
	for b.Loop() {
		require.NoError(b, m.Scores(b.Context(), pcm, func(int, []float32) error { return nil }))
	}
	b.ReportMetric(pcm.Duration()*float64(b.N)/b.Elapsed().Seconds(), "x_realtime")
}
