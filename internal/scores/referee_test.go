//go:build referee

package scores

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReferee scores 500 new meetings with our code, MeetEval and jiwer.
func TestReferee(t *testing.T) {
	cmd := exec.Command(os.Getenv("OTOGRAPH_REFEREE"), "testdata/meetings.py", "1", "500")
	cmd.Stderr = os.Stderr
	cases, err := cmd.Output()
	require.NoError(t, err)
	for score, n := range compare(t, bytes.NewReader(cases)) {
		t.Logf("%s: %d meetings equal", score, n)
	}
}
