//go:build long

package audio

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFiveHours: memory for the longest recording that is accepted is that for any other; one second more is refused.
func TestFiveHours(t *testing.T) {
	checkFlatMemory(t, 5*3600)
	_, err := Open(t.Context(), File(longWAV(t, 5*3600+1)), Options{})
	require.ErrorIs(t, err, ErrTooLong)
}
