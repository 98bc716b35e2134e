package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTimeFlags: a flag holds a date, a time or a duration, or is absent.
func TestTimeFlags(t *testing.T) {
	at, err := timeFlag(time.UTC, "expires", "2090-01-31")
	require.NoError(t, err)
	assert.Equal(t, time.Date(2090, 1, 31, 0, 0, 0, 0, time.UTC), at)
	at, err = timeFlag(time.UTC, "since", "")
	require.NoError(t, err)
	assert.Zero(t, at)
	_, err = timeFlag(time.UTC, "expires", "tomorrow")
	require.ErrorAs(t, err, new(*usageError))
	assert.ErrorContains(t, err, "--expires: ")
}

// TestHookFlags: a hook that can't be set is refused with its flag, before a
// store is opened.
func TestHookFlags(t *testing.T) {
	const url = "https://hook.example/"
	for flag, c := range map[string]accountHookCmd{
		"--url: must":      {URL: "ftp://hook.example/"},
		"--url: expected":  {Budget: "1"},
		"--budget: ":       {URL: url, Budget: "1,5"},
		"--budget: must":   {URL: url, Budget: "-1"},
		"--events: must":   {URL: url, Events: []string{"task.gone"}},
		"--timezone: must": {URL: url, Timezone: "Here"},
	} {
		err := c.Run(t.Context())
		require.ErrorAs(t, err, new(*usageError))
		assert.ErrorContains(t, err, flag)
	}
}
