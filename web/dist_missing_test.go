package web

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The replacement for the built page is under version control and needs no
// built files.
func TestMissingPage(t *testing.T) {
	page, err := files.ReadFile("dist-missing.html")
	require.NoError(t, err)
	assert.Contains(t, string(page), "make build")
	assert.Contains(t, string(page), nonceMark)
	assert.NotContains(t, string(page), "<script")
}
