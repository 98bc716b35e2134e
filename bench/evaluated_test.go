package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
)

// TestTurnsInEvaluatedTimes compares scores within evaluated times with
// pyannote.metrics 4.2 on the same turns, times and collar.
func TestTurnsInEvaluatedTimes(t *testing.T) {
	reference := []SpeakerTurn{talk(0.5, 4, "A"), talk(3.5, 8, "B"), talk(9, 14, "A")}
	hypothesis := []SpeakerTurn{talk(0, 5, "x"), talk(5, 10, "y"), talk(10.5, 15, "x")}
	evaluated := [][2]float64{{1, 6}, {8.5, 13}}
	for _, c := range []struct {
		opt                                   DEROptions
		scored, missed, falseAlarm, confusion float64
	}{
		{DEROptions{Collar: 0, SkipOverlap: false}, 9.5, 1, 0.5, 2},
		{DEROptions{Collar: 0.25, SkipOverlap: false}, 7.75, 0.5, 0.25, 1.5},
		{DEROptions{Collar: 0.25, SkipOverlap: true}, 7.75, 0.5, 0.25, 1.5},
		{DEROptions{Collar: 0, SkipOverlap: true}, 8.5, 0.5, 0.5, 2},
	} {
		d := scoreTurnsWithin(reference, hypothesis, evaluated, c.opt)
		assert.InDelta(t, c.scored, d.Scored, 1e-9, "%+v", c.opt)
		assert.InDelta(t, c.missed, d.Missed, 1e-9, "%+v", c.opt)
		assert.InDelta(t, c.falseAlarm, d.FalseAlarm, 1e-9, "%+v", c.opt)
		assert.InDelta(t, c.confusion, d.Confusion, 1e-9, "%+v", c.opt)
	}
	assert.Equal(t, ScoreTurns(reference, hypothesis, DEROptions{}), scoreTurnsWithin(reference, hypothesis, [][2]float64{{0, 20}}, DEROptions{}))
}

// TestManifestWithUEM checks that the evaluated times of a manifest and of a
// folder apply to the scores.
func TestManifestWithUEM(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.wav": "RIFF", "a.rttm": "SPEAKER a 1 0 4 <NA> <NA> A <NA> <NA>\n", "a.uem": "a 1 0 2\n", "m.jsonl": `{"file": "a.wav", "rttm": "a.rttm", "uem": "a.uem"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, path := range []string{dir, filepath.Join(dir, "m.jsonl")} {
		items, err := Load(path)
		require.NoError(t, err)
		assert.Empty(t, items[0].Keys)
		res := &otograph.Result{DiarizeSegments: []otograph.Turn{{Start: 0, End: 2, Speaker: "x"}}}
		res.Ran.Diarize = true
		d := scoreResult(items[0], res, scoreOptions{}).Turns
		assert.InDelta(t, 2, d.Scored, 1e-9)
		assert.Zero(t, d.Missed, "the end is not evaluated")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.jsonl"), []byte(`{"file": "a.wav", "uem": "none.uem"}`), 0o600))
	_, err := Load(filepath.Join(dir, "m.jsonl"))
	require.ErrorIs(t, err, datasets.ErrManifest)
}
