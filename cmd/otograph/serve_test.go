package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServeChecksHowLongTasksAre(t *testing.T) {
	for _, tt := range []struct {
		keep, unknown time.Duration
		want          string
	}{
		{0, time.Minute, ""},
		{24 * time.Hour, 5 * time.Hour, ""},
		{time.Hour, time.Minute, "--keep-tasks is 1h0m0s, expected at least 24h0m0s"},
		{-time.Hour, time.Minute, "--keep-tasks is -1h0m0s, expected at least 24h0m0s"},
		{0, 0, "--unknown-length is 0s, expected more than 0 and at most 5h0m0s"},
		{0, 6 * time.Hour, "--unknown-length is 6h0m0s, expected more than 0 and at most 5h0m0s"},
	} {
		err := (&serveCmd{KeepTasks: tt.keep, UnknownLength: tt.unknown}).checkTasks()
		if tt.want == "" {
			assert.NoError(t, err)
			continue
		}
		require.EqualError(t, err, tt.want)
		assert.ErrorAs(t, err, new(*usageError))
	}
}

// Workers compute on the device that serve was given.
func TestServePassesTheDeviceOn(t *testing.T) {
	c := serveCmd{deviceFlag: deviceFlag{Device: "vulkan:1"}}
	c.Data = t.TempDir()
	command, err := c.workCommand(c.Device)
	require.NoError(t, err)
	assert.Contains(t, command, "--device=vulkan:1")

	var d device
	require.NoError(t, d.UnmarshalText([]byte("cpu")))
	assert.Error(t, d.UnmarshalText([]byte("abacus")))
}
