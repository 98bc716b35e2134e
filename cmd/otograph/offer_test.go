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

	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/published"
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
	for answer, pulls := range map[string]bool{"n\n": false, "No\n": false, "": false, "\n": false, "y\n": true, "YES": true} {
		asked = 0
		c := transcribeCmd{modelFlags: modelFlags{Models: filepath.Join(t.TempDir(), "models")}}
		var out bytes.Buffer
		pulled, err := c.offer(t.Context(), strings.NewReader(answer), &out)
		assert.False(t, pulled)
		for _, part := range []string{"no model for transcription", "The profile starter, ", "MB in all, from ", "standard ", "[y/N]"} {
			assert.Contains(t, out.String(), part)
		}
		assert.Equal(t, pulls, asked > 0, "%q", answer)
		if pulls {
			require.ErrorContains(t, err, "run the command again")
		} else {
			require.NoError(t, err)
		}
	}
}

// TestNeedRecognizer checks that a run without a recognizer names the command
// that gets one.
func TestNeedRecognizer(t *testing.T) {
	set := published.Models()
	require.ErrorContains(t, needRecognizer(set, true), "`otograph models pull` (125.7 MB)")
	require.NoError(t, needRecognizer(set, false), "nothing is transcribed")
	require.NoError(t, needRecognizer(demo.Models(), true))
}
