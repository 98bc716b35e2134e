package library

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/host"
)

// Costs are listed for the file that was measured, on this processor only.
func TestCosts(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.onnx"), filepath.Join(dir, "b.onnx")
	for _, path := range []string{first, second} {
		require.NoError(t, os.WriteFile(path, []byte("weights"), 0o600))
	}
	cost := Cost{Hour: 12.5, Sound: 100, Date: "2026-11-24", Size: 7}
	require.NoError(t, RememberCosts(nil))
	assert.NoFileExists(t, filepath.Join(data, "otograph", "costs.json"))
	require.NoError(t, RememberCosts(map[string]Cost{first: cost}))
	require.NoError(t, RememberCosts(map[string]Cost{second: {Hour: 3, Sound: 60, Date: "2026-11-25", Size: 7}}))
	assert.Equal(t, &cost, knownCosts().of(filepath.Join(dir, "tokens.txt"), first))
	assert.InDelta(t, 3, knownCosts().of(second).Hour, 0)
	assert.Nil(t, knownCosts().of(filepath.Join(dir, "c.onnx")))

	require.NoError(t, os.WriteFile(first, []byte("other weights"), 0o600))
	assert.Nil(t, knownCosts().of(first), "another file has not been measured")

	files, err := os.ReadDir(filepath.Join(data, "otograph"))
	require.NoError(t, err)
	assert.Len(t, files, 1, "no partial file remains")

	name := filepath.Join(data, "otograph", "costs.json")
	for _, damaged := range []string{"", "{", "null", "[1]", `{"` + second + "; " + host.ProcessorName() + `": {"size": 7}}`, `{"` + second + `; another": {"processor_seconds_per_hour": 3, "sound_seconds": 60, "size": 7}}`} {
		require.NoError(t, os.WriteFile(name, []byte(damaged), 0o600))
		assert.Nil(t, knownCosts().of(second), damaged)
	}
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.MkdirAll(filepath.Join(name, "taken"), 0o755))
	assert.ErrorContains(t, RememberCosts(map[string]Cost{first: cost}), "costs.json")
	files, err = os.ReadDir(filepath.Join(data, "otograph"))
	require.NoError(t, err)
	assert.Len(t, files, 1, "no partial file remains")
}
