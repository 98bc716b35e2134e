package httpapi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/tooltest"
)

// TestOpenAIGoClient calls the service with the official Go client, unchanged.
func TestOpenAIGoClient(t *testing.T) {
	w := newWorld(t)
	w.work()
	_, broke := w.newAccount("broke", "0")
	out, err := tooltest.Run("openaiclient", "-url", w.url, "-key", w.key, "-broke", broke)
	require.NoError(t, err)
	t.Log(out)
}
