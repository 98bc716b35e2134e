//go:build referee

package bench

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReferee compares the scores of 500 random recordings with
// pyannote.metrics.
func TestReferee(t *testing.T) {
	cmd := exec.Command(os.Getenv("OTOGRAPH_REFEREE"), "testdata/turns.py", "1", "500")
	cmd.Stderr = os.Stderr
	cases, err := cmd.Output()
	require.NoError(t, err)
	compareTurns(t, bytes.NewReader(cases))
}
