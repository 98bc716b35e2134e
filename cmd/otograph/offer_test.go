package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOffer answers the first transcription's question in every way. Package
// models tests the downloaded files.
func TestOffer(t *testing.T) {
	asked := 0
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.NotFound(w, r)
	}))
	defer mirror.Close()
	t.Setenv(mirrorVariable, mirror.URL)
	for _, tt := range []struct {
		answer   string
		declined bool
		pulls    bool
	}{{"n\n", true, false}, {"No\n", true, false}, {"", false, false}, {"\n", false, true}, {"y\n", false, true}, {"YES", false, true}} {
		asked = 0
		c := transcribeCmd{modelFlags: modelFlags{Models: filepath.Join(t.TempDir(), "models")}}
		var out bytes.Buffer
		pulled, err := c.offer(t.Context(), strings.NewReader(tt.answer), &out)
		assert.False(t, pulled)
		for _, part := range []string{"demo models", "The profile balanced, ", "GB in all, from ", "standard ", "[Y/n]"} {
			assert.Contains(t, strings.ReplaceAll(out.String(), "MB in all", "GB in all"), part)
		}
		assert.Equal(t, tt.pulls, asked > 0, "%q", tt.answer)
		if tt.pulls {
			require.ErrorContains(t, err, "--demo")
		} else {
			require.NoError(t, err)
		}
		if tt.declined {
			assert.FileExists(t, filepath.Join(c.Models, declined))
			assert.Contains(t, out.String(), "otograph models pull balanced")
		} else {
			assert.NoFileExists(t, filepath.Join(c.Models, declined))
		}
	}
}
