package userdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	assert.Equal(t, map[string]int{}, ReadTable[int]("numbers.json"))
	require.NoError(t, WriteTable("numbers.json", map[string]int{"one": 1}))
	require.NoError(t, WriteTable("numbers.json", map[string]int{"two": 2}))
	assert.Equal(t, map[string]int{"two": 2}, ReadTable[int]("numbers.json"))
	folder := filepath.Join(data, "otograph")
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 1, "no partial file remains")
	for _, damaged := range []string{"", "{", "null", `{"two": "two"}`, "[1]"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "numbers.json"), []byte(damaged), 0o600))
		assert.Equal(t, map[string]int{}, ReadTable[int]("numbers.json"), damaged)
	}

	require.NoError(t, os.Mkdir(filepath.Join(folder, "taken.json"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "taken.json", "file"), nil, 0o600))
	assert.ErrorContains(t, WriteTable("taken.json", map[string]int{"one": 1}), "taken.json")
	files, err = os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 2)
}
