package tag_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/events/tag"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/published"
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

// yamnet is the embedded published network (log-mel patches).
func yamnet(t testing.TB, threads int) *tag.Model {
	t.Helper()
	needsRuntime(t)
	m, err := published.Models().Need(models.RoleTagger)
	require.NoError(t, err)
	assert.Equal(t, models.ContractYAMNetPatches, m.Contract)
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
	one := score(t, yamnet(t, 1), pcm)
	assert.Equal(t, one, score(t, yamnet(t, 3), pcm))
	assert.Len(t, one, 1+(len(long)-15600+7679)/7680)
}

func TestScoresStopsOnErrors(t *testing.T) {
	m := yamnet(t, 1)
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
	assert.ErrorIs(t, m.Scores(t.Context(), audio.FromSamples(make([]float32, 100)), nil), ort.ErrClosed)
}

// TestYAMNetAgreesWithReference compares with stored scores of the published
// network under another front end and runtime.
func TestYAMNetAgreesWithReference(t *testing.T) {
	folder := filepath.Join(shared(t), "testdata", "real")
	m := yamnet(t, 2)
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

// TestYAMNetOnRealClips checks that the sound in a recording is named.
func TestYAMNetOnRealClips(t *testing.T) {
	m := yamnet(t, 2)
	for file, classes := range map[string][]string{
		"event_baby_cry.flac":    {"Baby cry, infant cry", "Crying, sobbing"},
		"event_clock.flac":       {"Clock", "Tick", "Tick-tock"},
		"event_dog_bark.flac":    {"Dog", "Bark", "Bow-wow"},
		"event_dog_barking.flac": {"Dog", "Bark", "Bow-wow"},
		"event_rain.flac":        {"Rain", "Raindrop", "Rain on surface"},
		"event_rooster.flac":     {"Chicken, rooster", "Crowing, cock-a-doodle-doo"},
		"event_sneeze.flac":      {"Sneeze"},
	} {
		found, err := events.Detect(t.Context(), m, open(t, filepath.Join("../../testdata/real", file)), events.DefaultOptions())
		require.NoError(t, err)
		var names []string
		for _, e := range found {
			names = append(names, e.Class.DisplayName)
		}
		named := slices.ContainsFunc(classes, func(c string) bool { return slices.Contains(names, c) })
		// The clock is too faint for the default threshold.
		assert.Equal(t, file != "event_clock.flac", named, "%s: %v", file, names)
	}
}

// BenchmarkYAMNet processes a minute of sound on one core.
func BenchmarkYAMNet(b *testing.B) {
	m := yamnet(b, 1)
	pcm := audio.FromSamples(make([]float32, 60*audio.SampleRate))
	for b.Loop() {
		require.NoError(b, m.Scores(b.Context(), pcm, func(int, []float32) error { return nil }))
	}
	b.ReportMetric(pcm.Duration()*float64(b.N)/b.Elapsed().Seconds(), "x_realtime")
}
