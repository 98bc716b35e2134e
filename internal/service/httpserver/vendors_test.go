package httpserver

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/sessions"
)

// noSessions refuses every session at its first sound.
type noSessions struct{ orders chan sessions.Order }

func (s noSessions) Open(_ context.Context, o sessions.Order, _ doors.Settings) (doors.Session, error) {
	s.orders <- o
	return nil, &doors.EndError{Reason: doors.Full, Text: "no room"}
}

func (noSessions) Enter(ctx context.Context, _, _ string) (_ context.Context, leave func()) {
	return ctx, func() {}
}

// TestLiveInterfacesOfVendors checks the credentials, the refusals and the
// first and last messages of other vendors' interfaces for live sound.
func TestLiveInterfacesOfVendors(t *testing.T) {
	live := noSessions{make(chan sessions.Order, 9)}
	w := newWorld(t, func(c *Config) { c.Live = live })
	dial := func(path string, header http.Header, protocols ...string) (*websocket.Conn, *http.Response) {
		conn, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(w.url, "http")+path, &websocket.DialOptions{HTTPHeader: header, Subprotocols: protocols})
		if err == nil {
			t.Cleanup(func() { _ = conn.CloseNow() })
		}
		return conn, resp
	}
	token := with("Authorization", "Token "+w.key)
	for _, c := range []struct {
		path      string
		header    http.Header
		protocols []string
		first     string // type of the first message, "" for none
		last      string
		code      websocket.StatusCode
	}{
		{"/v1/listen?encoding=linear16", token, nil, "", "Error", 1013},
		{"/v1/listen?encoding=linear16", nil, []string{"token", w.key}, "", "Error", 1013},
		{"/v1/listen?encoding=linear16", nil, []string{"token", w.key, "x-deepgram-session-id", "7f0c"}, "", "Error", 1013},
		{"/v2/listen?encoding=linear16", nil, []string{"bearer", w.key}, "Connected", "Error", 1013},
		{"/v2/listen?encoding=linear16&model=flux-general-en", token, nil, "Connected", "Error", 1013},
		{"/v3/ws?sample_rate=16000", with("Authorization", w.key), nil, "Begin", "Error", 1013},
	} {
		conn, resp := dial(c.path, c.header, c.protocols...)
		require.NotNil(t, conn, c.path)
		assert.Equal(t, append(c.protocols, "")[0], resp.Header.Get("Sec-WebSocket-Protocol"))
		read := func() string {
			var m struct{ Type string }
			_, data, err := conn.Read(t.Context())
			require.NoError(t, err, c.path)
			require.NoError(t, json.Unmarshal(data, &m))
			return m.Type
		}
		if c.first != "" {
			assert.Equal(t, c.first, read(), c.path)
		}
		require.NoError(t, conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 3200)))
		assert.Equal(t, c.last, read(), c.path)
		_, _, err := conn.Read(t.Context())
		assert.Equal(t, c.code, websocket.CloseStatus(err), c.path)
		assert.Equal(t, w.account.ID, (<-live.orders).Account)
	}
	for _, c := range []struct {
		path, want string
		header     http.Header
		status     int
	}{
		{"/v1/listen?encoding=flac", "encoding: must be linear16", token, 400},
		{"/v2/listen?encoding=linear16&eot_threshold=2", "eot_threshold: must be a number", token, 400},
		{"/v3/ws?sample_rate=1", "sample_rate: must be a number", with("Authorization", w.key), 400},
		{"/v1/listen?encoding=linear16", "INVALID_AUTH", with("Authorization", w.key), 401},
		{"/v3/ws?sample_rate=16000", "credentials", with("Authorization", w.key[:40]), 401},
		{"/v1/listen?encoding=linear16", `"err_msg":"pages of this origin may not connect;`, with("Authorization", "Token "+w.key, "Origin", "https://other.example"), 403},
	} {
		_, resp := dial(c.path, c.header)
		require.NotNil(t, resp, c.path)
		body, err := io.ReadAll(resp.Body)
		require.True(t, err == nil || errors.Is(err, io.ErrUnexpectedEOF))
		assert.Equal(t, c.status, resp.StatusCode, c.path)
		assert.Contains(t, string(body), c.want)
	}
	a := w.do("GET", "/listen?encoding=linear16", nil)
	_, message := deepgramFailure(t, a)
	assert.Equal(t, []any{426, "connect with a WebSocket, over HTTP/1.1", "websocket"}, []any{a.status, message, a.header.Get("Upgrade")})
	req, err := http.NewRequest("GET", w.url+"/v1/listen?encoding=linear16", nil)
	require.NoError(t, err)
	req.Header = token
	resp, err := overHTTP2(t).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, []any{426, 2, ""}, []any{resp.StatusCode, resp.ProtoMajor, resp.Header.Get("Upgrade")}, "clients end an HTTP/2 connection with this header")
}

// Nothing is unpacked: compression is not agreed upon, and a frame that claims
// it ends the connection, as does a message that is too long. Neither frame
// begins a session.
func TestFramesOfLiveClients(t *testing.T) {
	live := noSessions{make(chan sessions.Order, 9)}
	w := newWorld(t, func(c *Config) { c.Live = live })
	packed := append([]byte{0xc2, 0x84, 0, 0, 0, 0}, "\x4a\x4c\x04\x00"...) // RFC 7692: RSV1 marks a compressed message
	for want, frame := range map[websocket.StatusCode][]byte{
		websocket.StatusProtocolError: packed,
		websocket.StatusMessageTooBig: append(binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, maxLiveMessage+1), make([]byte, 4+maxLiveMessage+1)...),
	} {
		var raw net.Conn
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			raw, err = new(net.Dialer).DialContext(ctx, network, address)
			return raw, err
		}}}
		conn, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(w.url, "http")+"/v1/listen?encoding=linear16", &websocket.DialOptions{
			HTTPClient: client, HTTPHeader: with("Authorization", "Token "+w.key), CompressionMode: websocket.CompressionContextTakeover,
		})
		require.NoError(t, err)
		assert.Empty(t, resp.Header.Get("Sec-WebSocket-Extensions"))
		go func() { _, _ = raw.Write(frame) }() // until the server closes the connection
		_, _, err = conn.Read(t.Context())
		assert.Equal(t, want, websocket.CloseStatus(err), "%v", err)
		_ = conn.CloseNow()
	}
	assert.Empty(t, live.orders)
}
