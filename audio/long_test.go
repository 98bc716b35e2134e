//go:build long

package audio

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFiveHours checks that the longest accepted recording takes no more memory
// than any other, and that one more second is rejected.
func TestFiveHours(t *testing.T) {
	checkFlatMemory(t, 5*3600)
	_, err := Open(t.Context(), File(longWAV(t, 5*3600+1)), Options{})
	require.ErrorIs(t, err, ErrTooLong)
}
