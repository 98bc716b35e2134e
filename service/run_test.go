package service

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// TestRunLeavesNothingBehind: if a part cannot be built, none of the others
// keeps running.
func TestRunLeavesNothingBehind(t *testing.T) {
	s, err := Open(t.Context(), Config{Folder: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	before := outside.Running()
	s.config.Workers = Workers{N: 1} // without a command
	require.ErrorContains(t, s.Run(t.Context()), "needs Command")
	require.Empty(t, outside.Leaks(before...))
}
