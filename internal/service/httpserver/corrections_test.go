package httpserver

import (
	"archive/zip"
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCorrections: every format has the corrections, and original=true returns
// the result without them. The log has authors and times. A correction of
// another version is refused with the current version.
func TestCorrections(t *testing.T) {
	s := newSpec(t, "sqlite")
	path, result := "/tasks/"+s.all+"/corrections", "/tasks/"+s.all+"/result"
	before := s.do("GET", result, nil)
	a := s.do("GET", path, nil)
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, `"0"`, a.header.Get("ETag"))
	for i, body := range []string{
		`{"version":0,"op":"split","segment":0,"at":6}`,
		`{"version":1,"op":"assign","segment":0,"speaker":"SPEAKER_7"}`,
		`{"version":2,"op":"annotate","texts":{"0":"Hello you"},"speakers":{"SPEAKER_7":"Ana"}}`,
	} {
		a := s.do("POST", path, body)
		require.Equal(t, 201, a.status, "%s", a.body)
		assert.EqualValues(t, i+1, a.object(t)["version"])
		assert.Equal(t, s.key[:8]+"…", a.object(t)["author"])
	}
	a = s.do("POST", path, `{"version":1,"op":"undo"}`)
	s.refusedWith(a, 409, codeConflict)
	assert.Equal(t, `"3"`, a.header.Get("ETag"))
	assert.Contains(t, string(a.body), "version 3 is current, not 1")
	s.refusedWith(s.do("POST", path, `{"version":3,"op":"undo"}`, with("If-Match", `"2"`)), 412, codeConflict)
	assert.Equal(t, 409, s.do("POST", path, `{"version":1,"op":"undo"}`, with("If-Match", `"7", W/"1"`)).status)
	for tags, status := range map[string]int{`"3"`: 304, `"2", W/"3"`: 304, "*": 304, `"2"`: 200, "3": 200} {
		a := s.do("GET", path, nil, with("If-None-Match", tags))
		assert.Equal(t, status, a.status, tags)
		assert.Equal(t, `"3"`, a.header.Get("ETag"))
	}

	for _, format := range []string{"srt", "vtt", "tsv", "md", "textgrid", "eaf", "labels"} {
		text := func(query string) string {
			a := s.do("GET", "/tasks/"+s.all+"/transcript?format="+format+query, nil)
			require.Equal(t, 200, a.status, "%s: %s", format, a.body)
			return string(a.body)
		}
		assert.Contains(t, text(""), "Hello you", format)
		assert.Contains(t, text("&original=false"), "Ana", format)
		assert.Contains(t, strings.Join(strings.Fields(text("&original=true")), " "), "Hello there.", format)
	}
	for _, format := range []string{"vtt", "ctm"} {
		assert.Contains(t, string(s.do("GET", "/tasks/"+s.all+"/transcript?format="+format, nil).body), "Some word times are estimated", format)
	}
	for _, format := range []string{"", "html", "pdf"} {
		s.refusedWith(s.do("GET", "/tasks/"+s.all+"/transcript?format="+format, nil), 400, codeInvalidRequest)
	}
	docx := s.do("GET", "/tasks/"+s.all+"/transcript?format=docx", nil)
	archive, err := zip.NewReader(bytes.NewReader(docx.body), int64(len(docx.body)))
	require.NoError(t, err)
	document, err := archive.Open("word/document.xml")
	require.NoError(t, err)
	text, err := io.ReadAll(document)
	require.NoError(t, err)
	plain := strings.Join(strings.Fields(regexp.MustCompile("<[^>]*>").ReplaceAllString(string(text), " ")), " ")
	assert.Regexp(t, "Ana .*Hello you .*SPEAKER_0 .*there", plain, "the split sentence has two speakers")
	assert.Contains(t, string(s.do("GET", "/tasks/"+s.all+"/transcript?format=rttm", nil).body), " Ana ")
	assert.Contains(t, string(s.do("GET", "/tasks/"+s.all+"/transcript?format=ctm", nil).body), "there.")
	corrected := s.result(s.all)
	segments := corrected["segments"].([]any)
	assert.Equal(t, "Hello you", segments[0].(map[string]any)["text"])
	assert.Equal(t, "SPEAKER_7", segments[0].(map[string]any)["speaker"], "the JSON form keeps the speakers that corrections name")
	assert.Equal(t, "there.", segments[1].(map[string]any)["text"])
	assert.Equal(t, before.body, s.do("GET", result+"?original=true", nil).body)
	s.refusedWith(s.do("GET", result+"?original=yes", nil), 400, codeInvalidRequest)

	for version := 3; version < 6; version++ {
		require.Equal(t, 201, s.do("POST", path, map[string]any{"version": version, "op": "undo"}).status)
	}
	assert.Equal(t, before.body, s.do("GET", result, nil).body, "all are undone")
	log := s.do("GET", path, nil).object(t)["corrections"].([]any)
	require.Len(t, log, 6)
	assert.Equal(t, "split", log[0].(map[string]any)["op"])
	assert.NotEmpty(t, log[0].(map[string]any)["made_at"])
	for _, bad := range []string{
		`{"op":"undo"}`, `{"version":6}`, `{"version":6,"op":"undo"}`, `{"version":6,"op":"join","segment":"0"}`, `{"version":6,"op":"join","segment":null}`,
		`{"version":6,"op":"split","segment":0,"at":99}`, `{"version":6,"op":"assign","segment":0}`, `{"version":6,"op":"move","segment":0}`, `{"version":6.5,"op":"undo"}`,
		`{"version":6,"op":"annotate","texts":{"x":"y"}}`, `{"version":6,"op":"annotate","texts":{"01":"y"}}`, `{"version":6,"op":"annotate","speakers":{"":"y"}}`,
		`{"version":6,"op":"annotate","speakers":{"SPEAKER_0":" "}}`, `{"version":6,"op":"annotate","speakers":["x"]}`, `{"version":6,"op":"annotate","more":{}}`, `[]`,
		`{"version":6,"op":"annotate","texts":{"99":"lost"}}`, `{"version":6,"op":"annotate","speakers":{"SPEAKER_99":"lost"}}`,
		`{"version":6,"op":"annotate","texts":{"0":"` + strings.Repeat("x", 10_001) + `"}}`,
	} {
		s.refusedWith(s.do("POST", path, bad), 400, codeInvalidRequest)
	}
	_, stranger := s.newAccount("someone else", "1")
	for _, method := range []string{"GET", "POST"} {
		s.refusedWith(s.do(method, path, `{"version":6,"op":"undo"}`, with("X-Api-Key", stranger)), 403, codeForbidden)
		s.refusedWith(s.do(method, "/tasks/"+s.running+"/corrections", `{"version":0,"op":"undo"}`), 404, codeNotFound)
	}
	require.Equal(t, 200, s.do("DELETE", "/tasks/"+s.all, nil).status)
	var left int
	require.NoError(t, s.db.Read().QueryRow("SELECT COUNT(*) FROM corrections").Scan(&left))
	assert.Zero(t, left, "they are deleted with the task")
}
