package sessions

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/doors/realtime"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/spec"
)

// cutConn is a connection that is cut after some messages to the client, or
// when the client's are over.
type cutConn struct {
	left int
	in   chan string
	cut  chan struct{}
	code int
}

func (c *cutConn) Read(ctx context.Context) (bool, []byte, error) {
	select {
	case m, ok := <-c.in:
		if ok {
			return true, []byte(m), nil
		}
		<-c.cut
	case <-c.cut:
	case <-ctx.Done():
	}
	return false, nil, io.EOF
}

func (c *cutConn) Write(context.Context, []byte) error {
	if c.left--; c.left == 0 {
		close(c.cut)
		return io.ErrClosedPipe
	}
	return nil
}

func (c *cutConn) Ping(context.Context) error { return nil }

func (c *cutConn) Close(code int, _ string) error {
	c.code = code
	return nil
}

// Wherever a connection is cut, the session is charged once for the sound that
// came, its place is free again, and nothing else remains.
func TestCutConnections(t *testing.T) {
	d := dbtest.SQLite(t, db.Options{})
	w := open(t, d)
	piece := fmt.Sprintf(`{"type":"input_audio_buffer.append","audio":%q}`, base64.StdEncoding.EncodeToString(make([]byte, 8000)))
	update := `{"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcmu"},"turn_detection":null}}}}`
	script := []string{update, piece, `{"type":"input_audio_buffer.commit"}`, piece, "garbage", piece, `{"type":"input_audio_buffer.clear"}`, update, piece}
	for cut := 1; cut <= 10; cut++ { // all events of the script
		before := w.balance(t, w.Account)
		conn := &cutConn{left: cut, in: make(chan string, len(script)), cut: make(chan struct{})}
		for _, m := range script {
			conn.in <- m
		}
		id := tasks.NewID()
		door, err := realtime.New(id, "", nil, func(string, *spec.Options, *spec.Extras) error { return nil }, time.Hour)
		require.NoError(t, err)
		began := false
		e := doors.Serve(t.Context(), conn, door, door.Settings(), func(ctx context.Context, set doors.Settings) (doors.Session, error) {
			began = true
			return w.Open(ctx, Order{ID: id, Account: w.Account}, set)
		}, doors.Limits{})
		assert.Equal(t, doors.Gone, e.Reason)
		assert.Equal(t, 1000, conn.code)
		charged := before - w.balance(t, w.Account)
		assert.Equal(t, began, charged == 100, "cut at %d: %d", cut, charged)
		assert.Zero(t, w.open.Load())
		assert.Zero(t, w.Count("SELECT COUNT(*) FROM holds"))
		w.Exact()
	}
	assert.Empty(t, w.Orphans())
}
