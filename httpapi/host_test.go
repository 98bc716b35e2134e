package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHostNames: the configured names and this machine's names are served, so
// that no web page can reach the service through a foreign name; with an empty
// list only this machine's are.
func TestHostNames(t *testing.T) {
	for _, tt := range []struct {
		hosts []string
		host  string
		want  int
	}{
		{nil, "api.example.com", 200},
		{[]string{}, "127.0.0.1:8080", 200},
		{[]string{}, "localhost", 200},
		{[]string{}, "LocalHost.:8080", 200},
		{[]string{}, "app.localhost:8080", 200},
		{[]string{}, "[::1]:8080", 200},
		{[]string{}, "rebound.example.com:8080", 421},
		{[]string{}, "192.0.2.1", 421},
		{[]string{}, "", 421},
		{[]string{"API.example.com"}, "api.example.com:443", 200},
		{[]string{"api.example.com"}, "other.example.com", 421},
	} {
		w := newWorld(t, func(c *Config) { c.Hosts = tt.hosts })
		r := httptest.NewRequest("GET", "/v1/pricing", nil)
		r.Host = tt.host
		got := httptest.NewRecorder()
		w.api.Handler().ServeHTTP(got, r)
		assert.Equal(t, tt.want, got.Code, "%q for %q", tt.host, tt.hosts)
		if tt.want == 421 {
			assert.JSONEq(t, `{"error":"this host name is not served; the operator can add it with --host","error_code":"forbidden"}`, got.Body.String())
		}
	}
}

// TestForeignHostWithoutBodyIsAnswered: a request for a foreign host whose body
// never arrives gets a response, and its connection is closed, for every path.
func TestForeignHostWithoutBodyIsAnswered(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Hosts, c.BodyGrace = []string{}, 100*time.Millisecond })
	for _, request := range []string{"GET /v1/pricing", "GET /", "POST /v1/tasks"} {
		t.Run(request, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", request)
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
			read := bufio.NewReader(conn)
			resp, err := http.ReadResponse(read, nil)
			require.NoError(t, err)
			assert.Equal(t, 421, resp.StatusCode)
			assert.True(t, resp.Close)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			_, err = read.ReadByte()
			assert.ErrorIs(t, err, io.EOF, "the connection is closed")
		})
	}
}
