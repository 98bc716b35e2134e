package doors

import (
	"context"
	"strings"

	"github.com/coder/websocket"
)

// Conn is a connection that carries messages. Read and Write may be called at
// the same time, each by one goroutine.
type Conn interface {
	Read(ctx context.Context) (text bool, data []byte, err error)
	Write(ctx context.Context, data []byte) error
	// Ping waits until the client has shown that it is there. It needs a Read.
	Ping(ctx context.Context) error
	// Close closes the connection with a WebSocket close code and a reason.
	Close(code int, reason string) error
}

// WebSocket is a Conn whose messages to the client are texts.
type WebSocket struct{ *websocket.Conn }

// Read implements Conn.
func (w WebSocket) Read(ctx context.Context) (text bool, data []byte, err error) {
	kind, data, err := w.Conn.Read(ctx)
	return kind == websocket.MessageText, data, err
}

// Write implements Conn.
func (w WebSocket) Write(ctx context.Context, data []byte) error {
	return w.Conn.Write(ctx, websocket.MessageText, data)
}

// longestReason is the largest number of bytes of a close frame's reason.
const longestReason = 123

// Close implements Conn.
func (w WebSocket) Close(code int, reason string) error {
	return w.Conn.Close(websocket.StatusCode(code), shorten(reason))
}

// shorten returns the longest beginning of a text that fits a close frame.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestReason)], "")
}
