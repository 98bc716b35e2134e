package httpserver

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestProbesAreNotLogged: a request for a probe is logged at the level of
// debugging, unless it fails.
func TestProbesAreNotLogged(t *testing.T) {
	var out lockedBuffer
	w := newWorld(t, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&out, nil)) })
	for _, path := range opsPaths {
		assert.Equal(t, 200, w.send("GET", path, nil, nil).status)
	}
	assert.NotContains(t, out.String(), `"msg":"request"`)
	w.do("GET", "/account", nil)
	assert.Contains(t, out.String(), `"route":"/v1/account"`)
	w.api.Leave()
	assert.Equal(t, 503, w.send("GET", "/readyz", nil, nil).status)
	assert.Contains(t, out.String(), `"route":"/readyz"`)
}
