//go:build referee

package normalize

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReferee compares 2,000 normalized sentences in six languages with
// whisper-normalizer.
func TestReferee(t *testing.T) {
	cmd := exec.Command(os.Getenv("OTOGRAPH_REFEREE"), "testdata/sentences.py", "../../tools/training/asr", "2000")
	cmd.Stderr = os.Stderr
	cases, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, 2000, compare(t, bytes.NewReader(cases)))
}
