package httpserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWaveform: the worker's peaks are served unchanged to the account that
// owns the task, and are deleted with it.
func TestWaveform(t *testing.T) {
	s := newSpec(t, "sqlite")
	a := s.do("GET", "/tasks/"+s.asr+"/waveform", nil)
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, []byte{0, 128, 255}, a.body)
	assert.Equal(t, "application/octet-stream", a.header.Get("Content-Type"))

	_, stranger := s.newAccount("someone else", "1")
	s.refusedWith(s.do("GET", "/tasks/"+s.asr+"/waveform", nil, with("X-Api-Key", stranger)), 403, codeForbidden)
	for _, id := range []string{s.running, s.refused, unknownTask} {
		s.refusedWith(s.do("GET", "/tasks/"+id+"/waveform", nil), 404, codeNotFound)
	}
	require.Equal(t, 200, s.do("DELETE", "/tasks/"+s.lite, nil).status)
	s.refusedWith(s.do("GET", "/tasks/"+s.lite+"/waveform", nil), 404, codeNotFound)
}
