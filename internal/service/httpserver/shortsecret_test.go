package httpserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestShortSecretsCauseAWarning: short secrets are accepted, as the interface
// requires, with a warning header on the unchanged response and a line in the
// log, which does not contain the secret.
func TestShortSecretsCauseAWarning(t *testing.T) {
	w := newWorld(t)
	submit := func(path, secret string) (warning, lines string) {
		before := len(w.log.String())
		body := map[string]any{"audio_url": "https://a.example.com/a.wav"}
		if path == "/tasks/batch" {
			body = map[string]any{"audio_url": []string{"https://a.example.com/a.wav"}, "batch_mode": true}
		}
		body["callback_url"] = "https://hooks.example.com/"
		if secret != "" {
			body["callback_secret"] = secret
		}
		a := w.do("POST", path, body)
		assert.Equal(t, 201, a.status, "%s", a.body)
		return a.header.Get("Warning"), w.log.String()[before:]
	}
	for _, path := range []string{"/tasks", "/tasks/batch"} {
		for secret, short := range map[string]bool{"": false, "x": true, "fifteen letters": true, "ü is one letter": true, "sixteen letters!": false, strings.Repeat("a", 64): false} {
			warning, lines := submit(path, secret)
			assert.Equal(t, short, strings.Contains(warning, "callback_secret"), "%s %q", path, secret)
			assert.Equal(t, short, strings.Contains(lines, "short callback secret"), "%s %q", path, secret)
			if short && len(secret) > 1 {
				assert.NotContains(t, lines, secret)
			}
		}
	}
}
