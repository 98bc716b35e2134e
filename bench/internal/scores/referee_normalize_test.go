//go:build referee

package scores

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/test/outside"
)

// TestRefereeOfNormalizers compares 2,000 normalized sentences in six languages
// with whisper-normalizer.
func TestRefereeOfNormalizers(t *testing.T) {
	assert.Equal(t, 2000, compareTexts(t, outside.Referee(t, "testdata/sentences.py", "../../../tools/training/asr", "2000")))
}
