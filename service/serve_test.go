package service

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefusedConnectionsAreCounted: Serve refuses connections beyond its limit
// and counts them.
func TestRefusedConnectionsAreCounted(t *testing.T) {
	s, err := Open(t.Context(), Config{Folder: t.TempDir(), MaxConnections: 10, ConnectionsPerAddress: 1})
	require.NoError(t, err)
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, l, nil) }()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	require.Eventually(t, func() bool {
		page := httptest.NewRecorder()
		s.OpsHandler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return strings.Contains(page.Body.String(), "\notograph_connections_refused_total 2\n")
	}, 10*time.Second, 10*time.Millisecond)
	stop()
	assert.NoError(t, <-served)
}

// TestConfigIsChecked: Open names the unusable field.
func TestConfigIsChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"Config.Folder is required, unless Database and Files are given": {Database: "postgres://localhost/x"},
		"Config.KeepTasks is 1h0m0s, expected at least 24h0m0s":          {KeepTasks: time.Hour},
		"Config.UnknownLength is 6h0m0s, expected":                       {UnknownLength: 6 * time.Hour},
		"Config.FetchesPerAccount is -1, expected a positive number":     {FetchesPerAccount: -1},
		"Config.FetchesPerHost is -1, expected a positive number":        {FetchesPerHost: -1},
		"Config.FetchLimit is -1ns, expected a positive duration":        {FetchLimit: -1},
		"Config.StallTimeout is -1s, expected a positive duration":       {StallTimeout: -time.Second},
		"Config.Grace is -1s, expected a positive duration":              {Grace: -time.Second},
		"Config.Workers has no Command":                                  {Workers: Workers{N: 1}},
		`Config.TrustedProxies is wrong: trusted proxy "nonsense"`:       {TrustedProxies: []string{"nonsense"}},
		"Config.AllowOutbound or DenyOutbound is wrong":                  {DenyOutbound: []string{"//"}},
	} {
		if c.Database == "" {
			c.Folder = t.TempDir()
		}
		_, err := Open(t.Context(), c)
		assert.ErrorAs(t, err, new(*ConfigError))
		assert.ErrorContains(t, err, want)
	}
	assert.ErrorContains(t, Work(t.Context(), Config{Folder: t.TempDir()}), "Config.Engine is required")
}
