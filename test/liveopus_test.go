package test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLiveOpus: Opus packets, and Opus in Ogg and WebM, have the text and the
// length of the samples. Other sound ends the session with a sentence.
func TestLiveOpus(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--demo")
	encode := func(name string) []byte {
		path := filepath.Join(t.TempDir(), name)
		out, err := exec.Command("ffmpeg", "-v", "error", "-i", "../testdata/demo/short/en_08.flac", "-c:a", "libopus", "-page_duration", "20000", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return data
	}
	ogg := encode("a.ogg")
	var packets [][]byte
	for rest := ogg; len(rest) > 0; {
		n := int(rest[26])
		size := 27 + n
		for _, lace := range rest[27 : 27+n] {
			size += int(lace)
		}
		packets = append(packets, rest[27+n:size])
		rest = rest[size:]
	}
	for query, sound := range map[string][][]byte{
		"encoding=linear16": {raw(t, "../testdata/demo/short/en_08.flac")}, "encoding=opus&sample_rate=48000": packets[2:], "encoding=ogg-opus": {ogg[:50], ogg[50:]}, "interim_results=true": {encode("a.webm")},
	} {
		text, seconds, code := s.listen(query, sound)
		assert.Equal(t, "We want to paint the kitchen purple.", text, query)
		assert.InDelta(t, 2.51, seconds, 0.03, query)
		assert.Equal(t, websocket.StatusNormalClosure, code)
	}
	text, _, code := s.listen("", [][]byte{[]byte("RIFF    WAVE")})
	assert.Contains(t, text, "expected Opus in Ogg or WebM")
	assert.Equal(t, websocket.StatusPolicyViolation, code)
}

// listen sends sound to Deepgram's interface, and returns the final texts, the
// seconds that the server counted and the close code.
func (s *server) listen(query string, sound [][]byte) (text string, seconds float64, code websocket.StatusCode) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/listen?language=en&"+query, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Token " + s.key}}})
	require.NoError(s.t, err)
	defer func() { _ = conn.CloseNow() }()
	for _, m := range sound {
		require.NoError(s.t, conn.Write(ctx, websocket.MessageBinary, m))
	}
	time.Sleep(100 * time.Millisecond)
	_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"CloseStream"}`))
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return strings.TrimSpace(text), seconds, websocket.CloseStatus(err)
		}
		var m struct {
			Type, Description string
			Duration          float64
			Final             bool `json:"is_final"`
			Channel           json.RawMessage
		}
		require.NoError(s.t, json.Unmarshal(data, &m))
		var channel struct{ Alternatives []struct{ Transcript string } }
		_ = json.Unmarshal(m.Channel, &channel)
		if m.Final && len(channel.Alternatives) > 0 {
			text += " " + channel.Alternatives[0].Transcript
		}
		if m.Type == "Metadata" {
			seconds = m.Duration
		}
		text += m.Description
	}
}
