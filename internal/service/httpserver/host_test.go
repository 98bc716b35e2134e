package httpserver

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
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
