package httpserver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwnersCancelTheirTasks: an owner cancels a waiting task once, but neither
// another account's task nor a finished one.
func TestOwnersCancelTheirTasks(t *testing.T) {
	s := newSpec(t, "sqlite")
	a := s.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/a.wav", "batch_mode": true})
	require.Equal(t, 201, a.status, "%s", a.body)
	path := "/tasks/" + a.object(t)["id"].(string) + "/cancel"
	_, stranger := s.newAccount("someone else", "1")
	s.refusedWith(s.do("POST", path, nil, with("X-Api-Key", stranger)), 403, codeForbidden)
	a = s.do("POST", path, nil)
	require.Equal(t, 200, a.status, "%s", a.body)
	task := a.object(t)
	assert.Equal(t, "failed", task["status"])
	assert.Equal(t, "canceled by its owner", task["error_message"])
	assert.NotNil(t, task["finished_at"])
	s.refusedWith(s.do("POST", path, nil), 409, codeConflict)
	s.refusedWith(s.do("POST", "/tasks/"+s.all+"/cancel", nil), 409, codeConflict)
	s.refusedWith(s.do("POST", "/tasks/"+unknownTask+"/cancel", nil), 404, codeNotFound)
}

// TestListedTasksHaveDetails: done tasks in a list have details if the client
// asks for them.
func TestListedTasksHaveDetails(t *testing.T) {
	s := newSpec(t, "sqlite")
	for _, listed := range s.do("GET", "/tasks?details=true&status=done&page_size=100", nil).object(t)["tasks"].([]any) {
		task := listed.(map[string]any)
		assert.Positive(t, task["audio_duration"], task["id"])
		assert.Contains(t, task, "amount")
		if task["id"] == s.all {
			assert.Equal(t, "en", task["language"])
			assert.EqualValues(t, 1, task["num_speakers"])
		}
	}
	for _, listed := range s.do("GET", "/tasks?details=true&status=processing", nil).object(t)["tasks"].([]any) {
		assert.NotContains(t, listed, "amount")
	}
	s.refusedWith(s.do("GET", "/tasks?details=1", nil), 400, codeInvalidRequest)
}

// TestReceiptsOfDeletions: a deletion returns a signed receipt if the client
// asks for one, and the key that verifies it is public.
func TestReceiptsOfDeletions(t *testing.T) {
	s := newSpec(t, "sqlite")
	listed := s.do("GET", "/tasks?status=done&page_size=100", nil).object(t)["tasks"].([]any)
	for _, entry := range listed {
		if id := entry.(map[string]any)["id"].(string); id != s.all {
			assert.Equal(t, map[string]any{"message": "the task was deleted"}, s.do("DELETE", "/tasks/"+id, nil).object(t))
		}
	}
	require.Greater(t, len(listed), 1)
	s.refusedWith(s.do("DELETE", "/tasks/"+s.all+"?receipt=1", nil), 400, codeInvalidRequest)
	receipt := s.do("DELETE", "/tasks/"+s.all+"?receipt=true", nil).object(t)["receipt"].(string)
	r, err := s.api.cfg.Erasure.Verify(t.Context(), receipt)
	require.NoError(t, err)
	require.Len(t, r.Erased.Tasks, 1)
	assert.Equal(t, s.all, r.Erased.Tasks[0].ID)
	assert.NotEmpty(t, r.Erased.Tasks[0].Files, "the result")
	key := s.do("GET", "/receipts/key", nil, http.Header{"X-Api-Key": nil})
	assert.Equal(t, "EdDSA", key.object(t)["alg"])
	s.refusedWith(s.do("DELETE", "/tasks/"+s.all+"?receipt=true", nil), 404, codeNotFound)
}
