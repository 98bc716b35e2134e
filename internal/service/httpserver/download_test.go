package httpserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
)

// TestOwnersGetTheirAudio: the owner gets the recording whole and in ranges,
// while the service keeps it.
func TestOwnersGetTheirAudio(t *testing.T) {
	w := newWorld(t)
	w.tasks.Config.KeepAudio = time.Hour
	sent := wav(2)
	id := w.create(upload(nil))
	require.NoError(t, w.tasks.Complete(t.Context(), w.claim("worker"), shortResult))
	w.tasks.Config.KeepAudio = 0
	a := w.do("GET", "/tasks/"+id+"/audio", nil)
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, sent, a.body)
	assert.Contains(t, a.header.Get("Content-Type"), "audio/")
	assert.Contains(t, a.header.Get("Content-Disposition"), "attachment; filename=silence.wav")
	tag := a.header.Get("ETag")
	a = w.do("GET", "/tasks/"+id+"/audio", nil, with("Range", "bytes=100-199"))
	assert.Equal(t, 206, a.status)
	assert.Equal(t, sent[100:200], a.body)
	a = w.do("GET", "/tasks/"+id+"/audio", nil, with("Range", "bytes=-50"))
	assert.Equal(t, sent[len(sent)-50:], a.body)
	for status, header := range map[int][2]string{416: {"Range", "bytes=99999999-"}, 412: {"If-Match", `"another"`}} {
		a := w.do("GET", "/tasks/"+id+"/audio", nil, with(header[0], header[1]))
		assert.Equal(t, []any{status, codeInvalidRequest}, []any{a.status, a.object(t)["error_code"]})
	}
	assert.Equal(t, 304, w.do("GET", "/tasks/"+id+"/audio", nil, with("If-None-Match", tag)).status)
	assert.Equal(t, 200, w.do("HEAD", "/tasks/"+id+"/audio", nil).status)

	_, stranger := w.newAccount("someone else", "1")
	assert.Equal(t, 403, w.do("GET", "/tasks/"+id+"/audio", nil, with("X-Api-Key", stranger)).status)
	forgotten := w.create(upload(nil))
	c, err := w.tasks.Next(t.Context(), "worker", "set")
	require.NoError(t, err)
	require.NoError(t, w.tasks.Complete(t.Context(), c, tasks.Outcome{Seconds: 2}))
	a = w.do("GET", "/tasks/"+forgotten+"/audio", nil)
	assert.Equal(t, 404, a.status)
	assert.Contains(t, string(a.body), "does not keep this recording")
}
