package httpserver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
)

// TestAnnotationsAreKeptWithTheTask: a change is merged, increments the
// version, is refused if it is based on another version, and appears in every
// file.
func TestAnnotationsAreKeptWithTheTask(t *testing.T) {
	s := newSpec(t, "sqlite")
	path := "/tasks/" + s.all + "/annotations"
	a := s.do("GET", path, nil)
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, `"0"`, a.header.Get("ETag"))
	a = s.do("PATCH", path, `{"speakers":{"SPEAKER_0":"Ana <b>","SPEAKER_1":"Bo"},"texts":{"0":"Hello again there."}}`, with("If-Match", `"0"`))
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, `"1"`, a.header.Get("ETag"))
	s.refusedWith(s.do("PATCH", path, `{"speakers":{"SPEAKER_0":"Eve"}}`, with("If-Match", `"0"`)), 412, codeConflict)
	a = s.do("PATCH", path, `{"speakers":{"SPEAKER_1":null}}`)
	m := a.object(t)
	assert.Equal(t, map[string]any{"SPEAKER_0": "Ana <b>"}, m["speakers"])
	assert.Equal(t, map[string]any{"0": "Hello again there."}, m["texts"])
	assert.EqualValues(t, 2, m["version"])
	assert.Equal(t, m, s.do("GET", path, nil).object(t))

	for _, format := range []string{"srt", "vtt", "tsv", "md", "textgrid", "eaf", "labels"} {
		a := s.do("GET", "/tasks/"+s.all+"/transcript?format="+format, nil)
		require.Equal(t, 200, a.status, "%s: %s", format, a.body)
		assert.Contains(t, strings.Join(strings.Fields(string(a.body)), " "), "Hello again there.", format)
		assert.Contains(t, string(a.body), "Ana", format)
		assert.Contains(t, a.header.Get("Content-Disposition"), "attachment")
	}
	for _, format := range []string{"vtt", "ctm"} {
		assert.Contains(t, string(s.do("GET", "/tasks/"+s.all+"/transcript?format="+format, nil).body), "Some word times are estimated", format)
	}
	docx := s.do("GET", "/tasks/"+s.all+"/transcript?format=docx", nil)
	assert.Equal(t, "PK", string(docx.body[:2]))
	assert.Contains(t, string(s.do("GET", "/tasks/"+s.all+"/transcript?format=rttm", nil).body), "Ana_<b>")
	assert.NotContains(t, string(s.do("GET", "/tasks/"+s.all+"/result", nil).body), "Ana", "the result is the specification's")
	for _, format := range []string{"", "html", "pdf"} {
		s.refusedWith(s.do("GET", "/tasks/"+s.all+"/transcript?format="+format, nil), 400, codeInvalidRequest)
	}

	_, stranger := s.newAccount("someone else", "1")
	for _, method := range []string{"GET", "PATCH"} {
		s.refusedWith(s.do(method, path, `{}`, with("X-Api-Key", stranger)), 403, codeForbidden)
		s.refusedWith(s.do(method, "/tasks/"+s.running+"/annotations", `{}`), 404, codeNotFound)
	}
	for _, bad := range []string{
		`{"texts":{"x":"y"}}`, `{"texts":{"01":"y"}}`, `{"speakers":{"":"y"}}`, `{"speakers":{"SPEAKER_0":" "}}`, `{"speakers":["x"]}`, `{"more":{}}`, `[]`,
		`{"texts":{"0":"` + strings.Repeat("x", 10_001) + `"}}`,
	} {
		s.refusedWith(s.do("PATCH", path, bad), 400, codeInvalidRequest)
	}
	s.refusedWith(s.do("PATCH", path, `{}`, with("If-Match", "0")), 400, codeInvalidRequest)
	require.Equal(t, 200, s.do("DELETE", "/tasks/"+s.all, nil).status)
	var left int
	require.NoError(t, s.db.Read().QueryRow("SELECT COUNT(*) FROM corrections").Scan(&left))
	assert.Zero(t, left, "they are deleted with the task")
}

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
	assert.Equal(t, 416, w.do("GET", "/tasks/"+id+"/audio", nil, with("Range", "bytes=99999999-")).status)
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
