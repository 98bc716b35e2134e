package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/spec"
)

// mute is a live service whose sessions send nothing; it records their orders.
type mute struct{ orders chan sessions.Order }

func (m mute) Open(_ context.Context, o sessions.Order, _ doors.Settings) (doors.Session, error) {
	m.orders <- o
	return silence{make(chan struct{})}, nil
}

func (mute) Enter(ctx context.Context, _, _ string) (context.Context, func()) { return ctx, func() {} }

type silence struct{ closed chan struct{} }

func (silence) Write(context.Context, []byte) error             { return nil }
func (silence) Configure(context.Context, doors.Settings) error { return nil }
func (silence) Commit(context.Context) error                    { return nil }
func (silence) Clear(context.Context) error                     { return nil }

func (s silence) Events() iter.Seq2[spec.LiveEvent, error] {
	return func(func(spec.LiveEvent, error) bool) { <-s.closed }
}

func (s silence) Close() (*spec.Result, error) {
	close(s.closed)
	return &spec.Result{}, nil
}

// dial opens a WebSocket, or returns the status of the refusal.
func (w *world) dial(query, credential string, protocols ...string) (conn *websocket.Conn, status int) {
	header := http.Header{}
	if credential != "" {
		header.Set("Authorization", "bearer "+credential) // a scheme has any case
	}
	conn, res, err := websocket.Dial(context.Background(), strings.Replace(w.url, "http", "ws", 1)+"/v1/realtime"+query, &websocket.DialOptions{HTTPHeader: header, Subprotocols: protocols})
	if err != nil {
		return nil, res.StatusCode
	}
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, res.StatusCode
}

// sent is an event of the server.
type sent struct {
	Type    string
	Session struct{ ID string }
	Error   struct{ Message string }
}

func read(t *testing.T, conn *websocket.Conn) (e sent) {
	t.Helper()
	_, data, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &e))
	return e
}

// Keys open sessions in the header and as browsers send them, and so do client
// secrets, which open nothing else and end with the key that made them.
func TestRealtimeCredentials(t *testing.T) {
	live := mute{make(chan sessions.Order, 9)}
	w := newWorld(t, func(c *Config) { c.Live = live })
	secret := func(key string) string {
		body := `{"expires_after":{"anchor":"created_at","seconds":60},"session":{"type":"transcription","otograph":{"store":true}}}`
		a := w.do("POST", "/realtime/client_secrets", body, http.Header{"X-Api-Key": {key}})
		require.Equal(t, 200, a.status, "%s", a.body)
		value, _ := a.object(t)["value"].(string)
		require.True(t, strings.HasPrefix(value, "ek_"))
		return value
	}
	other, k, err := w.accounts.CreateKey(t.Context(), w.account.ID, accounts.KeyOptions{})
	require.NoError(t, err)
	reader, _, err := w.accounts.CreateKey(t.Context(), w.account.ID, accounts.KeyOptions{ReadOnly: true})
	require.NoError(t, err)
	own, others := secret(w.key), secret(other)
	for name, c := range map[string]struct {
		credential string
		protocols  []string
		status     int
	}{
		"key": {w.key, nil, 101}, "browser": {"", []string{"realtime", keyProtocol + own}, 101}, "secret": {own, nil, 101},
		"none": {"", nil, 401}, "wrong key": {"asr_wrong", nil, 401}, "wrong secret": {"ek_wrong", nil, 401}, "read-only": {reader, nil, 403},
	} {
		conn, status := w.dial("?intent=transcription", c.credential, c.protocols...)
		require.Equal(t, c.status, status, name)
		if conn == nil {
			continue
		}
		id := read(t, conn).Session.ID
		require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"input_audio_buffer.append","audio":"AAAA"}`)))
		o := <-live.orders
		assert.Equal(t, sessions.Order{ID: strings.TrimPrefix(id, "sess_"), Account: w.account.ID, Key: o.Key, Store: name != "key"}, o, name)
		assert.NotEmpty(t, o.Key)
	}
	assert.Equal(t, 401, w.send("GET", "/v1/account", nil, http.Header{"Authorization": {"Bearer " + own}}).status)
	require.NoError(t, w.accounts.RevokeKey(t.Context(), w.account.ID, k.ID))
	_, status := w.dial("", others)
	assert.Equal(t, 401, status)
	require.NoError(t, w.accounts.Suspend(t.Context(), w.account.ID))
	_, status = w.dial("", own)
	assert.Equal(t, 403, status)
}

// A session that cannot be served is refused before the upgrade, in OpenAI's
// form; a server that stops ends its sessions with 1012.
func TestRealtimeRefusals(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Live = mute{make(chan sessions.Order, 9)} })
	_, poor := w.newAccount("poor", "0")
	for query, status := range map[string]int{"?model=gpt-realtime": 404, "?model=whisper-1": 101, "": 101} {
		_, got := w.dial(query, w.key)
		assert.Equal(t, status, got, query)
	}
	_, status := w.dial("", poor)
	assert.Equal(t, 402, status)
	for body, status := range map[string]int{
		`{"session":{"type":"realtime"}}`: 400, `{"expires_after":{"seconds":9}}`: 400, `{"session":7}`: 400, `{"session":{"otograph":{"callback_secret":"s"}}}`: 400, `[]`: 400, `{}`: 200,
		`{"session":{"audio":{"input":{"transcription":{"model":"none"}}}}}`: 404,
	} {
		a := w.do("POST", "/realtime/client_secrets", body)
		require.Equal(t, status, a.status, "%s %s", body, a.body)
		if status != 200 {
			openAIFailure(t, a)
		}
	}
	conn, _ := w.dial("", w.key)
	require.Equal(t, "session.created", read(t, conn).Type)
	for _, message := range []string{`{"type":"session.update","session":{"otograph":{"callback_url":"ftp://x"}}}`, `{"type":"input_audio_buffer.append","audio":"AAAA"}`} {
		require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(message)))
	}
	require.Equal(t, "session.updated", read(t, conn).Type)
	assert.Equal(t, "callback_url: address refused: only http and https URLs are supported", read(t, conn).Error.Message)
	conn, _ = w.dial("", w.key)
	require.Equal(t, "session.created", read(t, conn).Type)
	w.api.Drain()
	_, _, err := conn.Read(t.Context())
	assert.Equal(t, websocket.StatusServiceRestart, websocket.CloseStatus(err))
	_, status = w.dial("", w.key)
	assert.Equal(t, 503, status)
	var e websocket.CloseError
	require.True(t, errors.As(err, &e))
	assert.NotEmpty(t, e.Reason)
}
