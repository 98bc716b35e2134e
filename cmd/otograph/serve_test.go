package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/service"
)

// The error for an invalid value names its flag.
func TestServeChecksDurations(t *testing.T) {
	for _, tt := range []struct {
		keep, unknown time.Duration
		want          string
	}{
		{time.Hour, time.Minute, "--keep-tasks is 1h0m0s, expected at least 24h0m0s"},
		{-time.Hour, time.Minute, "--keep-tasks is -1h0m0s, expected at least 24h0m0s"},
		{0, 0, "--unknown-length is 0s, expected more than 0"},
		{24 * time.Hour, 6 * time.Hour, "--unknown-length is 6h0m0s, expected more than 0 and at most 5h0m0s"},
	} {
		c := serveCmd{KeepTasks: tt.keep, UnknownLength: tt.unknown, Grace: time.Second, taskFlags: taskFlags{StallTimeout: time.Minute}, BasePath: "/v1", fetchFlags: fetchFlags{FetchesPerAccount: 1, FetchesPerHost: 1, FetchLimit: time.Hour}}
		config, err := c.config(t.TempDir(), slog.New(slog.DiscardHandler))
		if err == nil {
			_, err = service.Open(t.Context(), config)
			err = flagError(err)
		}
		require.EqualError(t, err, tt.want)
		assert.ErrorAs(t, err, new(*usageError))
	}
}

// A grace period of 0 is refused, because service.Config has a default for it.
func TestGraceIsNotZero(t *testing.T) {
	const want = "--grace is 0s, expected more than 0"
	_, err := (&serveCmd{UnknownLength: time.Minute}).config(t.TempDir(), slog.New(slog.DiscardHandler))
	require.EqualError(t, err, want)
	assert.ErrorAs(t, err, new(*usageError))
	err = (&workCmd{}).Run(t.Context())
	require.EqualError(t, err, want)
	assert.ErrorAs(t, err, new(*usageError))
}

// Workers use serve's device.
func TestWorkersUseServesDevice(t *testing.T) {
	c := serveCmd{deviceFlag: deviceFlag{Device: "vulkan:1"}}
	command, err := c.workCommand(t.TempDir(), c.Device)
	require.NoError(t, err)
	assert.Contains(t, command, "--device=vulkan:1")

	var d device
	require.NoError(t, d.UnmarshalText([]byte("cpu")))
	assert.Error(t, d.UnmarshalText([]byte("abacus")))
}
