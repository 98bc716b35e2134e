// Package wyoming serves speech recognition over the Wyoming protocol of Home
// Assistant.
package wyoming

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"time"
)

// Limits of an event's line, and of its data and its payload, in bytes.
const (
	maxLine = 64 << 10
	maxPart = 1 << 20
)

// Conn is a doors.Conn: each event is a message; audio-chunk is a binary
// message with its sound.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// NewConn returns the Conn of a connection.
func NewConn(conn net.Conn) *Conn { return &Conn{conn, bufio.NewReaderSize(conn, maxLine)} }

// Read implements doors.Conn.
func (c *Conn) Read(ctx context.Context) (text bool, data []byte, err error) {
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	return readEvent(c.in)
}

func readEvent(in *bufio.Reader) (text bool, data []byte, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return false, nil, err
	}
	var e struct {
		Type    string         `json:"type"`
		Data    map[string]any `json:"data"`
		Length  int            `json:"data_length"`
		Payload int            `json:"payload_length"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return false, nil, fmt.Errorf("event: %w", err)
	}
	if min(e.Length, e.Payload) < 0 || max(e.Length, e.Payload) > maxPart {
		return false, nil, fmt.Errorf("event: data of %d and payload of %d bytes; expected 0 to %d", e.Length, e.Payload, maxPart)
	}
	rest := make([]byte, e.Length+e.Payload)
	if _, err := io.ReadFull(in, rest); err != nil {
		return false, nil, err
	}
	if e.Type == "audio-chunk" {
		return false, rest[e.Length:], nil
	}
	if e.Length > 0 {
		more := map[string]any{}
		if err := json.Unmarshal(rest[:e.Length], &more); err != nil {
			return false, nil, fmt.Errorf("event: data: %w", err)
		}
		maps.Copy(more, e.Data)
		e.Data = more
	}
	data, err = json.Marshal(map[string]any{"type": e.Type, "data": e.Data})
	return true, data, err
}

// Write implements doors.Conn.
func (c *Conn) Write(ctx context.Context, data []byte) error {
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetWriteDeadline(time.Unix(1, 0)) })()
	_, err := c.conn.Write(data)
	return err
}

// Ping implements doors.Conn: TCP's keep-alive detects a client that has gone.
func (c *Conn) Ping(context.Context) error { return nil }

// Close implements doors.Conn. First it reads the client's data, for at most 30 s and
// 2 s of silence: unread data would reset the connection, and the last events be lost.
func (c *Conn) Close(int, string) error {
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		buffer := make([]byte, 32<<10)
		for begun, err := time.Now(), error(nil); err == nil && time.Since(begun) < 30*time.Second; {
			_ = c.conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			_, err = c.conn.Read(buffer)
		}
	}
	return c.conn.Close()
}
