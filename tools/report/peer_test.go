package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPeerRows(t *testing.T) {
	names := func() (list []string) {
		rows, err := peer("P").rows("otograph")
		require.NoError(t, err)
		for _, r := range rows {
			assert.Equal(t, r.reference[3], r.ours[len(r.ours)-1], "both get the same recording")
			assert.Equal(t, r.warm, r.reference[5] == "warm")
			list = append(list, r.what)
		}
		return list
	}
	t.Setenv("OTOGRAPH_MIXES", "")
	assert.Equal(t, []string{
		"Whisper base, 10 min, against batched cold", "Whisper base, 10 min, against sequential cold",
		"Whisper base, 5 min in noise, against batched cold", "Whisper base, 5 min in noise, against sequential cold",
		"Whisper base, 60 s, against batched warm", "Whisper base, 11 s, against sequential warm",
	}, names())

	dir := t.TempDir()
	t.Setenv("OTOGRAPH_MIXES", dir)
	_, err := peer("P").rows("otograph")
	require.ErrorContains(t, err, "expected a folder with .wav files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.wav"), make([]byte, 40*32000), 0o600))
	assert.Equal(t, []string{"Whisper base, mine.wav, against batched warm"}, names())
}

func TestGatherJoinsParts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"m_1/model.bin.part1": "ab", "m_2/model.bin.part2": "cd", "m_2/config.json": "{}"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	to := filepath.Join(dir, "to")
	for range 2 { // the second run must not duplicate anything
		require.NoError(t, gather(to, filepath.Join(dir, "m_?", "*")))
		text, err := os.ReadFile(filepath.Join(to, "model.bin"))
		require.NoError(t, err)
		assert.Equal(t, "abcd", string(text))
		assert.FileExists(t, filepath.Join(to, "config.json"))
	}
	assert.ErrorContains(t, gather(to, filepath.Join(dir, "absent*")), "found none")
}

func TestWarmCost(t *testing.T) {
	got, err := warmCost("some warning\nwarm 4.1 12.75\n")
	require.NoError(t, err)
	assert.Equal(t, cost{4.1, 12.75}, got)
	_, err = warmCost("Killed")
	assert.ErrorContains(t, err, `found "Killed"`)
}
