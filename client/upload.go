package client

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"sync"
)

// upload is a request body that stops reading its source once closed, so that
// the source can be used again.
type upload struct {
	mu     sync.Mutex
	from   io.Reader
	closed bool
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return u.from.Read(p)
}

// Close implements io.Closer. It waits for a running Read.
func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	return nil
}

// encoder reads the standard Base64 encoding of from.
type encoder struct {
	from  io.Reader
	raw   [24 << 10]byte // a multiple of 3, so that only the end is padded
	text  [32 << 10]byte
	ready []byte // the unread part of text
	err   error  // of from
}

// Read implements io.Reader.
func (e *encoder) Read(p []byte) (int, error) {
	if len(e.ready) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var n int
		n, e.err = io.ReadFull(e.from, e.raw[:])
		if errors.Is(e.err, io.ErrUnexpectedEOF) {
			e.err = io.EOF
		}
		base64.StdEncoding.Encode(e.text[:], e.raw[:n])
		e.ready = e.text[:base64.StdEncoding.EncodedLen(n)]
	}
	n := copy(p, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

// failingReader replaces a body that cannot be read again.
type failingReader struct{ err error }

// Read implements io.Reader.
func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
