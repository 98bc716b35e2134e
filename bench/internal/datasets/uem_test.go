package datasets

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUEMHasTheTimesOfARecording(t *testing.T) {
	dir := t.TempDir()
	load := func(text, recording string) ([][2]float64, error) {
		path := filepath.Join(dir, "a.uem")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return loadUEM(path, recording)
	}
	got, err := load(";; times\na 1 5 9\nb 1 0 1\n\na 1 0.5 2\na 2 1 3\n", "x/a.wav")
	require.NoError(t, err)
	assert.Equal(t, [][2]float64{{0.5, 3}, {5, 9}}, got)
	got, err = load("ES2004a 1 0 10\n", "ES2004a.Array1-01.wav")
	require.NoError(t, err)
	assert.Equal(t, [][2]float64{{0, 10}}, got, "the only name counts")
	got, err = load("a.wav 1 0 10\nb.wav 1 0 5\n", "x/a.wav")
	require.NoError(t, err)
	assert.Equal(t, [][2]float64{{0, 10}}, got, "names with their endings, as in RTTM")
	for text, reason := range map[string]string{
		"b 1 0 1\nc 1 0 1\n": "expected times of a.wav, found none",
		"a 1 0\n":            "line 1 has 3 fields",
		"a 1 2 1\n":          "expected a start and an end",
		"a 1 0 +Inf\n":       "expected a start and an end",
	} {
		_, err := load(text, "a.wav")
		require.ErrorContains(t, err, reason)
	}
}
