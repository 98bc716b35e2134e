package httpserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWrongBaseURLNamesTheEndpoint: a path below a wrong base URL is refused
// with the endpoint that was probably meant, in the form of that endpoint's
// interface, also where a page is served.
func TestWrongBaseURLNamesTheEndpoint(t *testing.T) {
	for _, page := range []http.Handler{nil, http.NotFoundHandler()} {
		w := newWorld(t, func(c *Config) { c.Web = page })
		origin := strings.TrimSuffix(w.url, "/v1")
		for from, want := range map[string]string{
			"/v1/v1/audio/transcriptions": "/v1/audio/transcriptions", "/audio/transcriptions": "/v1/audio/transcriptions",
			"/v1/audio/transcriptions/": "/v1/audio/transcriptions", "//v1/audio/transcriptions": "/v1/audio/transcriptions",
			"/V1/Audio/Transcriptions": "/v1/audio/transcriptions", "/openai/deployments/w/audio/translations": "/v1/audio/translations",
			"/models": "/v1/models", "/v1/realtime/": "/v1/realtime", "/api/v1/realtime/client_secrets": "/v1/realtime/client_secrets",
			"/v1/v1/tasks": "/v1/tasks", "/v1/tasks/": "/v1/tasks", "/v1/v2/listen": "/v2/listen", "/listen": "/v1/listen", "/v3/v3/ws": "/v3/ws",
			"/v1/healthz": "/healthz", "/v1/chat/completions": "", "/v1/realtime/calls": "", "/v1/nothing": "", "/" + strings.Repeat("a/", 30000) + "tasks": "/v1/tasks",
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin, strings.NewReader("{}"))
			require.NoError(t, err)
			r.URL.Path = from
			response, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer response.Body.Close()
			assert.Equal(t, http.StatusNotFound, response.StatusCode, from[:min(40, len(from))])
			var body map[string]any
			require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
			message, own := body["error"].(string)
			switch {
			case strings.Contains(want, "/audio/"), strings.Contains(want, "/realtime"), strings.Contains(want, "/models"):
				require.False(t, own, from)
				message = body["error"].(map[string]any)["message"].(string)
			case strings.HasSuffix(want, "/listen"):
				message, _ = body["err_msg"].(string)
			}
			if want != "" {
				assert.Contains(t, message, "did you mean "+want+"?", from[:min(40, len(from))])
			} else {
				assert.NotContains(t, message, "did you mean")
			}
		}
	}
}
