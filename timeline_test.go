package otograph_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// TestContainerTimestampsAreKept transcribes two sentences with five seconds of
// silence between them: complete, without the packets of the silence, and as a
// film's delayed sound. Text and times are the same, but missing packets are
// not decoded.
func TestContainerTimestampsAreKept(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("requires ffmpeg")
	}
	dir := t.TempDir()
	sentences := []string{
		"-i", "testdata/demo/short/en_01.flac", "-f", "lavfi", "-i", "anullsrc=r=48000:cl=mono:d=5", "-i", "testdata/demo/short/en_05.flac",
		"-filter_complex", "[0]aresample=48000[a];[2]aresample=48000[b];[a][1][b]concat=n=3:v=0:a=1", "-c:a", "libopus",
	}
	run := func(name string, args ...string) *otograph.Result {
		path := filepath.Join(dir, name)
		out, err := exec.Command("ffmpeg", append(append([]string{"-v", "error"}, args...), path)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		res, err := shared(t).Run(t.Context(), otograph.File(path), otograph.Options{EnableAudioEvents: new(false)})
		require.NoError(t, err)
		return res
	}
	whole := run("whole.webm", sentences...)
	require.Len(t, whole.Segments, 2, text(whole))
	assert.Equal(t, whole.AudioDuration, whole.Stats.DecodedSeconds)

	first := int((whole.Segments[0].End + 0.5) / 0.02) // packets of 20 ms
	gap := run("gap.webm", append(append([]string{}, sentences...), "-bsf:a", fmt.Sprintf("noise=drop='between(n,%d,%d)'", first, first+199))...)
	late := run("late.mkv", "-f", "lavfi", "-i", "color=s=16x16:r=5:d=14", "-itsoffset", "3", "-i", filepath.Join(dir, "whole.webm"), "-map", "0", "-map", "1", "-c:v", "mpeg4", "-c:a", "copy")
	for name, c := range map[string]struct {
		res              *otograph.Result
		later, undecoded float64
	}{"gap": {gap, 0, 4}, "late": {late, 3, 0}} {
		assert.Equal(t, text(whole), text(c.res), name)
		assert.InDelta(t, whole.Stats.DecodedSeconds-c.undecoded, c.res.Stats.DecodedSeconds, 0.05, name)
		assert.InDelta(t, whole.AudioDuration+c.later, c.res.AudioDuration, 0.05, name)
		require.Len(t, c.res.Segments, 2, name)
		for i, s := range c.res.Segments {
			assert.InDelta(t, whole.Segments[i].Start+c.later, s.Start, 0.2, "%s: start of %d", name, i)
			assert.InDelta(t, whole.Segments[i].End+c.later, s.End, 0.2, "%s: end of %d", name, i)
		}
		for _, turn := range c.res.DiarizeSegments {
			assert.Less(t, turn.End-turn.Start, whole.Segments[1].End-whole.Segments[1].Start+1, "%s: no turn covers the gap", name)
		}
	}
}

// TestAudioTrackIsChosen transcribes each track of a film with two.
func TestAudioTrackIsChosen(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("requires ffmpeg")
	}
	path := filepath.Join(t.TempDir(), "film.mkv")
	out, err := exec.Command("ffmpeg", "-v", "error", "-i", "testdata/demo/short/en_01.flac", "-i", "testdata/demo/short/en_05.flac", "-map", "0", "-map", "1", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func(track *int) (*otograph.Result, error) {
		return shared(t).Run(t.Context(), otograph.File(path), otograph.Options{AudioTrack: track, EnableAudioEvents: new(false), EnableDiarize: new(false)})
	}
	for track, word := range map[*int]string{nil: "sunny", new(1): "sunny", new(2): "book"} {
		res, err := run(track)
		require.NoError(t, err)
		assert.Contains(t, text(res), word)
		assert.Equal(t, track != nil, len(spec.OfAudio(res.Warnings)) == 0, "tracks are named if none is chosen: %v", res.Warnings)
	}
	_, err = run(new(3))
	require.ErrorIs(t, err, audio.ErrNoAudio)
	assert.ErrorContains(t, err, "audio track 3 is not there")
}
