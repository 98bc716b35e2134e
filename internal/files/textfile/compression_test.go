package textfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCompressionRatio(t *testing.T) {
	assert.Zero(t, CompressionRatio(""))
	assert.Less(t, CompressionRatio("The quick brown fox jumps over the lazy dog."), 1.2)
	assert.Greater(t, CompressionRatio(strings.Repeat("thank you very much ", 20)), 2.4)
}
