package doors

import (
	"bytes"
	"context"
	"io"
	"time"
)

// Unpacker decodes pieces of Opus to float32 at 48 kHz, as audio.Unpack does.
type Unpacker func(ctx context.Context, in <-chan []byte, packets bool, out io.Writer) error

// decodingTime is how long a text waits until the sound before it is decoded.
// Decoding a packet takes a millisecond.
const decodingTime = 100 * time.Millisecond

type message struct {
	text bool
	data []byte
	err  error
}

// unpacked is a Conn with samples in place of Opus, until ctx is done.
type unpacked struct {
	Conn
	ctx  context.Context
	list chan message
}

// Read implements Conn.
func (u unpacked) Read(ctx context.Context) (text bool, data []byte, err error) {
	select {
	case m := <-u.list:
		return m.text, m.data, m.err
	case <-ctx.Done():
		return false, nil, ctx.Err()
	}
}

// add passes a message to Read.
func (u unpacked) add(m message) error {
	select {
	case u.list <- m:
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
}

// samples passes samples to Read.
type samples struct{ unpacked }

// Write implements io.Writer.
func (s samples) Write(data []byte) (int, error) {
	return len(data), s.add(message{data: bytes.Clone(data)})
}

// Unpack returns a connection whose Read returns samples in place of the Opus that
// the client sends in format f, until ctx is done. A message for which last is true
// comes after all samples. An error of the decoder is an *EndError of Read.
func Unpack(ctx context.Context, c Conn, f Format, last func(text bool, data []byte) bool, decode Unpacker) Conn {
	u := unpacked{c, ctx, make(chan message)}
	in, done := make(chan []byte), make(chan struct{})
	go func() {
		defer close(done)
		if err := decode(ctx, in, f.Opus == "packets", samples{u}); err != nil {
			_ = u.add(message{err: &EndError{Invalid, err.Error()}}) // also without ffmpeg: another connection would not help
		}
	}()
	go func() {
		for end := false; !end; {
			var m message
			m.text, m.data, m.err = c.Read(ctx)
			end = m.err != nil || last(m.text, m.data)
			switch {
			case end:
				close(in)
				<-done
			case m.text:
				time.Sleep(decodingTime)
			default:
				select {
				case in <- m.data:
				case <-done: // with an error
				}
				continue
			}
			_ = u.add(m)
		}
	}()
	return u
}
