package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/service"
)

// TestHostNames: a service on a loopback address is for local programs, unless
// it has host names or a proxy.
func TestHostNames(t *testing.T) {
	for _, tt := range []struct {
		address string
		flags   inboundFlags
		want    []string
	}{
		{"127.0.0.1:8080", inboundFlags{}, []string{}},
		{"[::1]:8080", inboundFlags{}, []string{}},
		{"localhost:0", inboundFlags{}, []string{}},
		{"127.0.0.1:8080", inboundFlags{TrustedProxies: []string{"127.0.0.1"}}, nil},
		{"127.0.0.1:8080", inboundFlags{Host: []string{"api.example.com"}}, []string{"api.example.com"}},
		{"0.0.0.0:8080", inboundFlags{}, nil},
		{"0.0.0.0:8080", inboundFlags{Host: []string{"api.example.com"}}, []string{"api.example.com"}},
	} {
		var c service.Config
		tt.flags.inbound(&c, tt.address)
		assert.Equal(t, tt.want, c.Hosts, "%s %+v", tt.address, tt.flags)
		assert.Equal(t, tt.flags.TrustedProxies, c.TrustedProxies)
	}
}

func TestMemoryLimitIsSet(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "") // so that it is restored
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	limitMemory(slog.New(slog.DiscardHandler))
	assert.Less(t, debug.SetMemoryLimit(-1), int64(math.MaxInt64))
}
