package httpserver

import (
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
