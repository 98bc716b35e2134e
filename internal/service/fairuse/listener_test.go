package fairuse

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConnectionLimits checks that one address can't take all connections, that
// all addresses together can't exceed the total, and that closing a connection
// frees its place.
func TestConnectionLimits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits ConnectionLimits
		from   []string // local addresses in the order of their connections
		taken  int
	}{
		{"by address", ConnectionLimits{Total: 10, PerAddress: 3}, []string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.1"}, 4},
		{"in all", ConnectionLimits{Total: 2, PerAddress: 3}, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, 2},
		{"a proxy", ConnectionLimits{Total: 5, PerAddress: 1, Proxies: proxies(t, "127.0.0.9")}, []string{"127.0.0.9", "127.0.0.9", "127.0.0.9", "127.0.0.1", "127.0.0.1"}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var refused atomic.Int64
			tt.limits.Refused = func(string) { refused.Add(1) }
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
			limited := NewListener(srv.Listener, tt.limits)
			srv.Listener = limited
			srv.Start()
			defer srv.Close()
			ask := func(c net.Conn) string {
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				b := make([]byte, 4096)
				n, _ := c.Read(b)
				return string(b[:n])
			}
			dial := func(from string) net.Conn {
				c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", srv.Listener.Addr().String())
				require.NoError(t, err)
				return c
			}
			var open []net.Conn
			for _, from := range tt.from {
				c := dial(from)
				if answer := ask(c); strings.HasPrefix(answer, "HTTP/1.1 200") {
					open = append(open, c)
				} else {
					c.Close()
				}
			}
			assert.Len(t, open, tt.taken)
			assert.EqualValues(t, len(tt.from)-tt.taken, refused.Load())
			for _, c := range open {
				c.Close()
			}
			require.Eventually(t, func() bool {
				limited.places.mu.Lock()
				defer limited.places.mu.Unlock()
				return limited.places.taken == 0 && len(limited.places.keys) == 0
			}, 10*time.Second, time.Millisecond)
			c := dial(tt.from[0])
			defer c.Close()
			assert.Contains(t, ask(c), "200 OK", "a slot is free again")
		})
	}
}

func proxies(t *testing.T, texts ...string) Proxies {
	t.Helper()
	p, err := ParseProxies(texts)
	require.NoError(t, err)
	return p
}

// TestRefusalIsHTTP checks that a refused connection gets a complete HTTP
// response.
func TestRefusalIsHTTP(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	go func() {
		_, _ = io.WriteString(a, busy)
		a.Close()
	}()
	text, err := io.ReadAll(b)
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(text), "\r\n\r\n")
	require.True(t, ok)
	assert.Len(t, body, 79)
	assert.Contains(t, string(text), "Content-Length: 79\r\n")
}
