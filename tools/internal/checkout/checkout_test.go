package checkout

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEnterFindsTheRoot(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "tools", "internal")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	t.Chdir(deep)
	require.ErrorContains(t, Enter(), "expected a folder of Otograph's repository")
	require.NoError(t, os.WriteFile(filepath.Join(root, "tools", "go.mod"), nil, 0o600))
	for _, from := range []string{deep, root} {
		t.Chdir(from)
		require.NoError(t, Enter())
		at, err := os.Getwd()
		require.NoError(t, err)
		assert.Equal(t, root, at)
	}
}
