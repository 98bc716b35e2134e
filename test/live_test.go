package test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// liveEvent is an event of the realtime interface.
type liveEvent struct {
	Type, Delta, Transcript string
	Item                    string `json:"item_id"`
	Session                 struct{ ID string }
	Error                   struct{ Type, Code, Message string }
}

// caller is a client of the realtime interface.
type caller struct {
	t    *testing.T
	conn *websocket.Conn
	task string
}

// phone opens a live session; session is the session of a session.update.
func (s *server) phone(session string) *caller {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/realtime?intent=transcription", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + s.key}}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	c := &caller{t: s.t, conn: conn}
	c.task = strings.TrimPrefix(c.until("session.created").Session.ID, "sess_")
	c.send(`{"type":"session.update","session":` + session + `}`)
	c.until("session.updated")
	return c
}

func (c *caller) send(message string) {
	c.t.Helper()
	require.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, []byte(message)))
}

// speak sends samples in pieces of a quarter of a second.
func (c *caller) speak(samples []byte) {
	c.t.Helper()
	for len(samples) > 0 {
		n := min(8000, len(samples))
		c.send(fmt.Sprintf(`{"type":"input_audio_buffer.append","audio":%q}`, base64.StdEncoding.EncodeToString(samples[:n])))
		samples = samples[n:]
	}
}

// next returns the next event.
func (c *caller) next() (e liveEvent, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	_, data, err := c.conn.Read(ctx)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	return e, err
}

// until returns the next event of a type; errors fail the test.
func (c *caller) until(kind string) liveEvent {
	c.t.Helper()
	for {
		e, err := c.next()
		require.NoError(c.t, err, "until %s", kind)
		require.True(c.t, e.Type != "error" || kind == "error", "%+v", e.Error)
		if e.Type == kind {
			return e
		}
	}
}

// closed returns the close code, after the last events.
func (c *caller) closed() websocket.StatusCode {
	for {
		if _, err := c.next(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

const pushToTalk = `{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcm","rate":16000},"transcription":{"model":"whisper-1","language":"en"},"turn_detection":null}}`

const completed = "conversation.item.input_audio_transcription.completed"

// ended waits for the end of a session's task and returns it.
func (s *server) ended(id string) map[string]any {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if task := s.task(id); task["finished_at"] != nil {
			return task
		}
		require.True(s.t, time.Now().Before(deadline), "task %s does not end", id)
	}
}

// TestLiveSessions: a session is a task with the text of the recording, charged
// by the minute; invalid messages do not end the session; a client that leaves
// is charged, and its sound is the task's recording.
func TestLiveSessions(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--demo", "--keep-audio", "1h")
	samples := raw(t, "../testdata/demo/short/en_08.flac")
	c := s.phone(pushToTalk + `,"otograph":{"store":true}}`)
	for _, garbage := range []string{"", "{", `{"type":"nothing"}`, `{"type":"input_audio_buffer.append","audio":"%%%"}`} {
		c.send(garbage)
		assert.NotEmpty(t, c.until("error").Error.Code)
	}
	c.speak(samples)
	c.send(`{"type":"input_audio_buffer.commit"}`)
	assert.Equal(t, "We want to paint the kitchen purple.", c.until(completed).Transcript)
	c.send(`{"type":"input_audio_buffer.commit"}`)
	assert.Empty(t, c.until(completed).Transcript)
	assert.Equal(t, "processing", s.task(c.task)["status"])
	require.NoError(t, c.conn.CloseNow())
	task := s.ended(c.task)
	assert.Equal(t, "done", task["status"])
	result := s.result(c.task)
	segments, _ := result["segments"].([]any)
	require.Len(t, segments, 1)
	assert.InDelta(t, float64(len(samples))/32000, result["audio_duration"], 0.01)
	kept := s.do("GET", "/tasks/"+c.task+"/audio", nil)
	assert.True(t, bytes.Equal(samples, kept.body[44:]), "%d bytes of sound, %d of a WAV file", len(samples), len(kept.body))
	money := s.do("GET", "/billing/transactions", nil).object(t)
	assert.EqualValues(t, 2, money["total"], "the first balance, and one charge: %v", money)
	a := s.do("GET", "/realtime", nil, "Connection", "Upgrade", "Upgrade", "websocket", "X-API-Key", "asr_wrong")
	assert.Equal(t, http.StatusUnauthorized, a.status)
	assert.Equal(t, http.StatusUpgradeRequired, s.do("GET", "/realtime", nil).status)
	for _, path := range []string{"/realtime/calls", "/realtime/transcription_sessions", "/live/sessions"} {
		a := s.do("POST", path, "{}")
		assert.Equal(t, http.StatusNotFound, a.status)
		assert.Contains(t, string(a.body), "not served")
	}
}

// TestLiveFaults: the models' process is killed, then the server is stopped,
// each in mid-session: the delivered sentences are charged, the codes let
// clients connect again, and the process is replaced.
func TestLiveFaults(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--demo")
	samples := raw(t, "../testdata/demo/short/en_08.flac")
	kept := pushToTalk + `,"otograph":{"store":true}}`
	c := s.phone(kept)
	c.speak(samples)
	c.send(`{"type":"input_audio_buffer.commit"}`)
	c.until(completed)
	c.speak(samples)
	require.NoError(t, syscall.Kill(s.liveProcess(), syscall.SIGKILL))
	assert.Equal(t, websocket.StatusInternalError, c.closed())
	assert.Equal(t, "done", s.ended(c.task)["status"])
	assert.Contains(t, fmt.Sprint(s.result(c.task)["segments"]), "purple")

	c = s.phone(kept)
	c.speak(samples)
	c.send(`{"type":"input_audio_buffer.commit"}`)
	c.until("input_audio_buffer.committed")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "We want to paint the kitchen purple.", c.until(completed).Transcript)
	assert.Equal(t, websocket.StatusServiceRestart, c.closed())
	require.NoError(t, s.cmd.Wait())
	s = s.again()
	assert.Equal(t, "done", s.task(c.task)["status"])
	assert.EqualValues(t, 3, s.do("GET", "/billing/transactions", nil).object(t)["total"])
}

// liveProcess returns the number of the process of the live sessions' models.
func (s *server) liveProcess() int {
	s.t.Helper()
	list, err := os.ReadDir("/proc")
	require.NoError(s.t, err)
	for _, entry := range list {
		pid, _ := strconv.Atoi(entry.Name())
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if strings.Contains(string(line), "\x00--live=") && strings.Contains(string(line), "\x00--data="+s.data+"\x00") {
			return pid
		}
	}
	s.t.Skip("no /proc")
	return 0
}
