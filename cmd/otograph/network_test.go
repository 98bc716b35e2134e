package main

import (
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/metrics"
)

// TestHostNames: on a loopback address a stranger's name is not served, so that
// no web page can lead a browser there; with names, they alone are served.
func TestHostNames(t *testing.T) {
	served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct {
		address string
		flags   inboundFlags
		host    string
		want    int
	}{
		{"127.0.0.1:8080", inboundFlags{}, "127.0.0.1:8080", 200},
		{"127.0.0.1:8080", inboundFlags{}, "localhost", 200},
		{"127.0.0.1:8080", inboundFlags{}, "LocalHost.:8080", 200},
		{"127.0.0.1:8080", inboundFlags{}, "app.localhost:8080", 200},
		{"127.0.0.1:8080", inboundFlags{}, "[::1]:8080", 200},
		{"[::1]:8080", inboundFlags{}, "rebound.example.com", 421},
		{"127.0.0.1:8080", inboundFlags{}, "rebound.example.com:8080", 421},
		{"127.0.0.1:8080", inboundFlags{}, "192.0.2.1", 421},
		{"127.0.0.1:8080", inboundFlags{}, "", 421},
		{"127.0.0.1:8080", inboundFlags{TrustedProxies: []string{"127.0.0.1"}}, "api.example.com", 200},
		{"127.0.0.1:8080", inboundFlags{Host: []string{"API.example.com"}}, "api.example.com:443", 200},
		{"0.0.0.0:8080", inboundFlags{}, "api.example.com", 200},
		{"0.0.0.0:8080", inboundFlags{Host: []string{"api.example.com"}}, "other.example.com", 421},
	} {
		r := httptest.NewRequest("GET", "/v1/pricing", nil)
		r.Host = tt.host
		w := httptest.NewRecorder()
		tt.flags.checkHost(tt.address, served).ServeHTTP(w, r)
		assert.Equal(t, tt.want, w.Code, "%s on %s", tt.host, tt.address)
		if w.Code == 421 {
			assert.Contains(t, w.Body.String(), "--host")
		}
	}
}

// TestRefusedConnectionsAreCounted: the listener that serve uses refuses beyond
// its limit and counts it.
func TestRefusedConnectionsAreCounted(t *testing.T) {
	counts := metrics.New(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	flags := inboundFlags{MaxConnections: 10, ConnectionsPerAddress: 1}
	limited, err := flags.limit(l, counts, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	srv := &http.Server{Handler: http.NotFoundHandler()} //nolint:gosec // a test's server
	go func() { _ = srv.Serve(limited) }()
	defer srv.Close()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	require.Eventually(t, func() bool {
		families, err := counts.Registry().Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "otograph_connections_refused_total" {
				return f.GetMetric()[0].GetCounter().GetValue() == 2
			}
		}
		return false
	}, 10*time.Second, time.Millisecond)
	flags.TrustedProxies = []string{"nonsense"}
	_, err = flags.limit(l, metrics.New(nil), slog.New(slog.DiscardHandler))
	assert.ErrorAs(t, err, new(*usageError))
}

func TestMemoryLimitIsSet(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "") // so that it is put back
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	limitMemory(slog.New(slog.DiscardHandler))
	assert.Less(t, debug.SetMemoryLimit(-1), int64(math.MaxInt64))
}
