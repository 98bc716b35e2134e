package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

// The embedded models, written to a folder, are recognized with their own
// contracts, so the same files work in every way of loading them.
func TestEmbeddedModelsAreRecognized(t *testing.T) {
	dir := t.TempDir()
	want := map[models.Role]models.Model{}
	for _, m := range Models().Models {
		want[m.Role] = m
		for _, f := range m.Files {
			data, err := f.Bytes()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), data, 0o600))
		}
	}
	set, err := library.OpenDir(dir)
	require.NoError(t, err)
	require.Len(t, set.Models, len(want))
	for _, m := range set.Models {
		assert.Equal(t, want[m.Role].Contract, m.Contract)
		assert.Len(t, m.Files, len(want[m.Role].Files), m.Name)
	}
	optimized, _ := set.Role(models.RoleOptimized)
	assert.ElementsMatch(t, want[models.RoleOptimized].Languages, optimized.Languages)
}
