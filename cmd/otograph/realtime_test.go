package main

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// realtimeClient is a client as a realtime server of the tests sees it.
type realtimeClient struct {
	t    *testing.T
	conn *websocket.Conn
	took int // bytes of sound
}

func (c *realtimeClient) send(messages ...string) {
	for _, m := range messages {
		if !assert.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, []byte(m))) {
			return
		}
	}
}

// until takes messages up to the first one of a type.
func (c *realtimeClient) until(kind string) map[string]any {
	for {
		var m map[string]any
		if err := wsjson.Read(c.t.Context(), c.conn, &m); !assert.NoError(c.t, err) {
			return nil
		}
		if sound, ok := m["audio"].(string); ok {
			c.took += len(sound) / 4 * 3
		}
		if m["type"] == kind {
			return m
		}
	}
}

// realtimeServer starts a server; answer gets the session after its
// session.updated.
func realtimeServer(t *testing.T, session func(c *realtimeClient)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/v1/realtime", r.URL.Path)
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, `{"error":"who are you?"}`, http.StatusUnauthorized)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if !assert.NoError(t, err) {
			return
		}
		defer conn.CloseNow()
		session(&realtimeClient{t: t, conn: conn})
		_, _, _ = conn.Read(t.Context()) // until the client closes
	}))
	t.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/realtime"
}

// turnsOf plays a second of sound to a server, and returns the events as kind,
// utterance and text.
func turnsOf(t *testing.T, r *realtime) (events []spec.LiveEvent, texts []string, err error) {
	t.Helper()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for e, failed := range r.Events() {
			if err = failed; err == nil {
				events = append(events, e)
			}
		}
	}()
	var failed error
	for range 50 {
		failed = cmp.Or(failed, r.Write(make([]float32, audio.SampleRate/50)))
	}
	res, _ := r.Close()
	<-read
	if err == nil {
		require.NoError(t, failed)
	}
	assert.InDelta(t, 1, res.AudioDuration, 0)
	for _, s := range res.Segments {
		texts = append(texts, s.Text)
	}
	return events, texts, err
}

const (
	updated    = `{"type":"session.updated"}`
	stopped    = `{"type":"input_audio_buffer.speech_stopped","item_id":"a","audio_end_ms":700}`
	ended      = `{"type":"input_audio_buffer.committed","item_id":"a"}`
	transcript = `{"type":"conversation.item.input_audio_transcription.completed","item_id":"a","transcript":"Hello you"}`
)

func TestRealtime(t *testing.T) {
	address := realtimeServer(t, func(c *realtimeClient) {
		c.send(`{"type":"session.created"}`)
		m := c.until("session.update")
		input := m["session"].(map[string]any)["audio"].(map[string]any)["input"].(map[string]any)
		assert.Equal(t, map[string]any{"model": "base", "language": "en"}, input["transcription"])
		c.send(updated, `{"type":"input_audio_buffer.speech_started","item_id":"a","audio_start_ms":100}`,
			`{"type":"conversation.item.input_audio_transcription.delta","item_id":"a","delta":"Hello"}`)
		c.until("input_audio_buffer.commit")
		assert.InDelta(t, 2*realtimeRate, c.took, 400, "a second of 16 bits, less the filter's delay")
		// A slow server sends its own commit after the client's.
		c.send(stopped, ended, `{"type":"conversation.item.input_audio_transcription.delta","item_id":"a","delta":" you"}`,
			transcript, `{"type":"input_audio_buffer.committed","item_id":"b"}`,
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"b","transcript":"Bye"}`)
	})
	r, err := openRealtime(t.Context(), address+"?intent=transcription&model=base", "secret", new("en"))
	require.NoError(t, err)
	events, texts, err := turnsOf(t, r)
	require.NoError(t, err)
	assert.Equal(t, []string{"Hello you", "Bye"}, texts)
	require.Len(t, events, 8)
	one := func(i int) spec.LiveEvent { e := events[i]; e.Segments = nil; return e }
	assert.Equal(t, spec.LiveEvent{Kind: spec.LiveSpeechStarted, Start: 0.1, End: events[0].End}, one(0))
	assert.Equal(t, "Hello", events[1].Text)
	assert.Equal(t, spec.LiveEvent{Kind: spec.LiveSpeechStopped, Start: 0.1, End: 0.7, Text: "Hello"}, one(2))
	assert.Equal(t, spec.LivePartial, events[4].Kind)
	assert.Equal(t, spec.LiveEvent{Kind: spec.LiveFinal, Start: 0.1, End: 0.7, Text: "Hello you"}, one(5))
	assert.Equal(t, spec.LiveEvent{Kind: spec.LiveFinal, Utterance: 1, End: 1, Text: "Bye"}, one(7))
}

// The error of the session names the fault of the server.
func TestRealtimeFailures(t *testing.T) {
	for name, test := range map[string]struct {
		after []string // messages after the commit
		want  string
	}{
		"an error":             {[]string{`{"type":"error","error":{"code":"busy","message":"later"}}`}, `error: busy: "later"`},
		"a turn failed":        {[]string{stopped, `{"type":"conversation.item.input_audio_transcription.failed","item_id":"a","error":{"code":"x","message":"no"}}`}, `failed: x: "no"`},
		"it ends early":        {[]string{stopped, ended, "end"}, "the session ended early"},
		"an empty last commit": {[]string{stopped, ended, transcript, `{"type":"error","error":{"code":"input_audio_buffer_commit_empty"}}`}, ""},
		"no JSON":              {[]string{"hello"}, "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := openRealtime(t.Context(), realtimeServer(t, func(c *realtimeClient) {
				c.send(updated)
				c.until("input_audio_buffer.commit")
				for _, m := range test.after {
					if m == "end" {
						_ = c.conn.Close(websocket.StatusTryAgainLater, "full")
						return
					}
					c.send(m)
				}
			}), "secret", nil)
			require.NoError(t, err)
			_, _, err = turnsOf(t, r)
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestRealtimeRefusals(t *testing.T) {
	address := realtimeServer(t, func(c *realtimeClient) {
		c.send(`{"type":"error","error":{"code":"model_not_found","message":"no base"}}`)
	})
	for name, test := range map[string]struct{ address, key, want string }{
		"no address":    {"ftp://localhost/v1/realtime", "", "scheme"},
		"no server":     {"ws://127.0.0.1:1/v1/realtime", "", "refused"},
		"a wrong key":   {address, "guess", "401"},
		"a wrong model": {address, "secret", "no base"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openRealtime(t.Context(), test.address, test.key, nil)
			assert.ErrorContains(t, err, test.want)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openRealtime(ctx, address, "secret", nil)
	assert.ErrorIs(t, err, context.Canceled)
}
