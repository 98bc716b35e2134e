package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTimeFlags: only a flag that may be absent has no time.
func TestTimeFlags(t *testing.T) {
	at, err := timeFlag("expires", "2090-01-31")
	require.NoError(t, err)
	assert.Equal(t, time.Date(2090, 1, 31, 0, 0, 0, 0, time.UTC), at)
	at, err = optionalTime("since", "")
	require.NoError(t, err)
	assert.Zero(t, at)
	for _, bad := range []string{"", "tomorrow"} {
		_, err = timeFlag("expires", bad)
		require.ErrorAs(t, err, new(*usageError))
		assert.ErrorContains(t, err, "--expires: ")
	}
	_, err = optionalTime("since", "tomorrow")
	assert.ErrorContains(t, err, "--since: ")
}
