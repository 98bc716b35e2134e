//go:build referee

package normalize

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/test/tooltest"
)

// TestReferee compares 2,000 normalized sentences in six languages with
// whisper-normalizer.
func TestReferee(t *testing.T) {
	assert.Equal(t, 2000, compare(t, tooltest.Referee(t, "testdata/sentences.py", "../../tools/training/asr", "2000")))
}
