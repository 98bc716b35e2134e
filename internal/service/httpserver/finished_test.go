package httpserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFinishedSince: a client that continues from each returned cursor lists
// every ended task once, and no others; an invalid cursor is refused.
func TestFinishedSince(t *testing.T) {
	s := newSpec(t, "sqlite")
	listed, cursor := map[string]bool{}, "0"
	for {
		page := s.do("GET", "/tasks?page_size=2&details=true&finished_since="+cursor, nil).object(t)
		entries := page["tasks"].([]any)
		if len(entries) == 0 {
			assert.Equal(t, cursor, page["cursor"])
			assert.EqualValues(t, len(listed), page["total"])
			break
		}
		for _, entry := range entries {
			task := entry.(map[string]any)
			assert.NotNil(t, task["finished_at"])
			assert.False(t, listed[task["id"].(string)])
			listed[task["id"].(string)] = true
		}
		cursor = page["cursor"].(string)
	}
	require.True(t, listed[s.all])
	assert.NotContains(t, s.do("GET", "/tasks", nil).object(t), "cursor")
	for _, query := range []string{"finished_since=", "finished_since=-1", "finished_since=x", "finished_since=999999", "finished_since=0&page=2", "finished_since=0&from=2026-01-01"} {
		s.refusedWith(s.do("GET", "/tasks?"+query, nil), 400, codeInvalidRequest)
	}
}
