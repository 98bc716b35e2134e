//go:build families

package silero

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/test/modeltest"
)

// sherpaRule applies the rule of sherpa-onnx's silero-vad-model.cc to
// probabilities: it returns whether each window is speech, with pauses and
// speech of 10 ms and more.
func sherpaRule(probabilities []float32, threshold float32) []bool {
	speech, from, until := false, 0, 0
	low := max(threshold-0.15, 0.01)
	out := make([]bool, len(probabilities))
	for t, p := range probabilities {
		now := (t + 1) * 512
		if p > threshold {
			until = 0
		}
		switch {
		case p > threshold && from == 0:
			from = now
		case p > threshold && !speech:
			speech = now-from >= 160
		case p < threshold && !speech:
			from, until = 0, 0
		case p > low || p >= threshold:
		default:
			if until == 0 {
				until = now
			}
			if now-until >= 160 {
				speech, from, until = false, 0, 0
			}
		}
		out[t] = speech
	}
	return out
}

// TestFamiliesEqualSherpaONNX compares the windows of speech that the network
// finds with sherpa-onnx's, at six thresholds.
func TestFamiliesEqualSherpaONNX(t *testing.T) {
	const name = "Silero v5, v6"
	const lead = 64 // without 64 zeros its first window has no context, and all windows are 4 ms late
	thresholds := []float32{0.2, 0.35, 0.5, 0.65, 0.8, 0.9}
	samples := recording(t, 17)[:512*512]
	src := embedded(t)
	mine, err := open(t, src, Options{}).Probabilities(t.Context(), audio.FromSamples(samples))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.onnx"), src.Data, 0o600))
	sound, err := json.Marshal(samples)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "samples.json"), sound, 0o600))
	args := []string{fmt.Sprint(lead)}
	for _, threshold := range thresholds {
		args = append(args, fmt.Sprint(threshold))
	}
	var theirs [][]bool
	modeltest.RunSherpa(t, &theirs, dir, args...)
	require.Len(t, theirs, len(thresholds))
	differ, speech := 0, 0
	for i, heard := range theirs {
		want := sherpaRule(mine, thresholds[i])
		require.Len(t, want, len(heard))
		for w := range heard {
			if heard[w] != want[w] {
				differ++
			}
			if heard[w] {
				speech++
			}
		}
	}
	all := len(thresholds) * len(mine)
	t.Logf("%s: %d of %d windows differ, %d are speech", name, differ, all, speech)
	assert.Zero(t, differ)
	modeltest.AssertFamilyRow(t, name, fmt.Sprint(all, " decisions"), differ == 0)
	assert.Greater(t, speech, all/20)
	assert.Less(t, speech, all*19/20)
}
