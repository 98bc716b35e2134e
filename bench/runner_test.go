package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
)

// fakeEngine returns the same text for every recording, and fails on some.
type fakeEngine struct {
	mu    sync.Mutex
	asked []string
	stop  func()
}

func (e *fakeEngine) Identity() string { return "fake" }

func (e *fakeEngine) Transcribe(_ context.Context, it Item) (*otograph.Result, Cost, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, it.Name)
	if e.stop != nil && len(e.asked) == 2 {
		e.stop()
	}
	if it.Name == "b" {
		return nil, Cost{}, errors.New("out of memory")
	}
	res := &otograph.Result{AudioDuration: 10, Segments: []otograph.Segment{{Text: "good morning " + it.Name}}}
	res.Ran.ASR = true
	return res, Cost{Wall: 2}, nil
}

// Another recognizer is measured and resumed like Otograph; only its own
// failures are recorded.
func TestEngineIsMeasuredAndResumed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	engine := &fakeEngine{stop: cancel}
	c := Config{
		Items:   []Item{{Name: "a", Text: new("good morning a")}, {Name: "b", Text: new("x")}, {Name: "c", Text: new("good mourning c")}},
		Systems: []System{{Name: "other", Engine: engine}, {Name: "again", Engine: &fakeEngine{}, Parallel: 2}},
		Seed:    1, RunFile: filepath.Join(t.TempDir(), "run.jsonl"),
	}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	engine.stop = nil
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "b", "c"}, engine.asked, "measured recordings are not requested again")
	s := r.Systems[0]
	assert.True(t, s.Other)
	assert.Equal(t, 1, s.Failed)
	assert.Equal(t, "out of memory", s.Items[1].Error)
	assert.InDelta(t, 1.0/6, s.Accuracy.WordRate.Value, 1e-12)
	assert.InDelta(t, 5, s.Cost.Speed.Value, 1e-12)
	assert.Nil(t, s.Accuracy.Language, "it names no language")
	assert.Equal(t, s.Accuracy, r.Systems[1].Accuracy)
	for _, f := range figures() {
		if slices.Contains([]string{"peak_rss", "cpu_per_hour", "encoder_passes_per_hour"}, f.key) {
			assert.Nil(t, f.of(s), "%s is not known of others", f.key)
		}
	}
}

// TestRunCutAnywhere checks that a run which was killed at any byte of its file
// yields the same report: each measurement is kept, or made again.
func TestRunCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	c := Config{
		Items:   []Item{{Name: "a", Text: new("good morning a")}, {Name: "b", Text: new("x")}, {Name: "c", Text: new("good mourning c")}},
		Systems: []System{{Name: "one", Engine: &fakeEngine{}}, {Name: "two", Engine: &fakeEngine{}}},
		Repeat:  2, Seed: 1, RunFile: filepath.Join(dir, "run.jsonl"),
	}
	report := func() string {
		r, err := Run(t.Context(), c)
		require.NoError(t, err)
		r.Machine = Machine{}
		var out bytes.Buffer
		require.NoError(t, r.WriteJSON(&out))
		return out.String()
	}
	want := report()
	whole, err := os.ReadFile(c.RunFile)
	require.NoError(t, err)
	step := 7
	if testing.Short() {
		step = 31
	}
	for cut := 0; cut <= len(whole); cut += step {
		require.NoError(t, os.WriteFile(c.RunFile, whole[:cut], 0o600))
		require.Equal(t, want, report(), "cut at byte %d", cut)
		again, err := os.ReadFile(c.RunFile)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(again), "cut at byte %d", cut)
	}
}
