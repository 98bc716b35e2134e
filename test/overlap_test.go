package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/subtitle"
)

// talkedOver returns a conversation of two voices and the periods in which both
// talk: the second voice starts two seconds before the first one ends, twice.
func talkedOver(t *testing.T) (samples []float32, both []bench.SpeakerTurn) {
	pcm, err := audio.Open(t.Context(), audio.File("../diarize/testdata/conv3.flac"), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	const early = 2.0
	at := 0.5 // seconds
	samples = make([]float32, int(40*audio.SampleRate))
	for i, turn := range [][2]float64{{0.63, 9.82}, {10.22, 17.13}, {23.36, 31.68}, {33.01, 37.47}} { // turns of two voices, alternating
		if i%2 == 1 {
			at -= early
			both = append(both, bench.SpeakerTurn{Start: at, End: at + early})
		}
		for k, x := range pcm.Samples(int(turn[0]*audio.SampleRate), int(turn[1]*audio.SampleRate)) {
			samples[int(at*audio.SampleRate)+k] += x / 2
		}
		at += turn[1] - turn[0]
		if i%2 == 1 {
			at += 0.6
		}
	}
	return samples[:int((at+0.5)*audio.SampleRate)], both
}

// TestOverlappingTurnsInRTTM: if two voices talk simultaneously, the RTTM of
// the command and of the library parses and has turns of both.
func TestOverlappingTurnsInRTTM(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	t.Parallel()
	samples, both := talkedOver(t)
	file := filepath.Join(t.TempDir(), "talked over.wav")
	require.NoError(t, os.WriteFile(file, wav(samples), 0o600))
	cmd := exec.Command(binary, "transcribe", "-q", "--demo", "--format", "rttm", file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	fromCommand, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	p, err := otograph.Open(demo.Models())
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	res, err := p.Run(t.Context(), otograph.File(file), otograph.Options{})
	require.NoError(t, err)
	var fromLibrary bytes.Buffer
	require.NoError(t, subtitle.Write(&fromLibrary, subtitle.FormatRTTM, "talked over.flac", time.Time{}, res))

	for name, text := range map[string]string{"command": string(fromCommand), "library": fromLibrary.String()} {
		turns, err := bench.ReadRTTM(strings.NewReader(text))
		require.NoError(t, err, name)
		require.NotEmpty(t, turns, name)
		voices := map[string]bool{}
		for _, turn := range turns {
			voices[turn.Speaker] = true
		}
		assert.Len(t, voices, 2, name)
		for _, stretch := range both {
			assert.Greater(t, overlapIn(turns, stretch), 1.0, "%s: seconds of two voices in %.1f to %.1f s:\n%s", name, stretch.Start, stretch.End, text)
		}
	}
}

// overlapIn returns how long turns of two speakers overlap within a period.
func overlapIn(turns []bench.SpeakerTurn, within bench.SpeakerTurn) (sum float64) {
	for i, a := range turns {
		for _, b := range turns[:i] {
			if a.Speaker != b.Speaker {
				sum += max(0, min(a.End, b.End, within.End)-max(a.Start, b.Start, within.Start))
			}
		}
	}
	return sum
}
