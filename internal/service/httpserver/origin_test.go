package httpserver

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOrigins: pages of allowed origins may send requests and read responses,
// including errors; others get no permission, and otherwise the same responses.
func TestOrigins(t *testing.T) {
	const app, stranger = "https://app.example.com", "https://stranger.example.com"
	w := newWorld(t, func(c *Config) { c.Origins = []string{app} })
	ask := func(method, path, origin string, header ...string) answer {
		h := http.Header{"Origin": {origin}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return w.send(method, "/v1"+path, nil, h)
	}
	a := ask("OPTIONS", "/audio/transcriptions", app, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,x-stainless-os")
	require.Equal(t, http.StatusNoContent, a.status)
	assert.Equal(t, []string{app, "authorization,x-stainless-os", "Origin"}, []string{
		a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Access-Control-Allow-Headers"), a.header.Get("Vary"),
	})
	assert.Contains(t, a.header.Get("Access-Control-Allow-Methods"), "POST")
	a = ask("GET", "/models", app)
	assert.Equal(t, []any{401, app}, []any{a.status, a.header.Get("Access-Control-Allow-Origin")}, "errors can be read as well")
	assert.Contains(t, a.header.Get("Access-Control-Expose-Headers"), "X-Task-Id, Warning")
	for _, a := range []answer{ask("GET", "/models", stranger), ask("OPTIONS", "/models", stranger, "Access-Control-Request-Method", "GET")} {
		assert.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	}
	assert.Empty(t, w.send("GET", "/healthz", nil, http.Header{"Origin": {app}}).header.Get("Access-Control-Allow-Origin"), "the API alone")

	open := newWorld(t, func(c *Config) { c.Origins = []string{"*"} })
	assert.Equal(t, stranger, open.send("GET", "/v1/pricing", nil, http.Header{"Origin": {stranger}}).header.Get("Access-Control-Allow-Origin"))
}

// TestSlashesAndSpacesAreTolerated: a list's path may end in a slash, and
// several spaces may follow Bearer.
func TestSlashesAndSpacesAreTolerated(t *testing.T) {
	w := newWorld(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/models/", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer  "+w.key)
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	list, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.JSONEq(t, string(w.do("GET", "/models", nil).body), string(list))
}

// TestDocumentsBelowAPrefix: the documents are served beside the API if its
// prefix is below a folder, and at the root.
func TestDocumentsBelowAPrefix(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BasePath = "/asr/v1" })
	for _, path := range []string{"/docs", "/openapi.json", "/asr/docs", "/asr/openapi.json"} {
		assert.Equal(t, 200, w.send("GET", path, nil, nil).status, path)
	}
}
