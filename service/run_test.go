package service

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otograph/otograph/internal/test/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// TestRunLeavesNothingBehind: if a part cannot be built, none of the others
// keeps running.
func TestRunLeavesNothingBehind(t *testing.T) {
	s, err := Open(t.Context(), Config{Folder: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	before := goleak.IgnoreCurrent()
	s.config.Workers = Workers{N: 1} // without a command
	require.ErrorContains(t, s.Run(t.Context()), "needs Command")
	goleak.VerifyNone(t, before)
}
