package httpserver

import (
	"net/http"
	"sync"
	"time"
)

// A request may be answered before its body has arrived: a refusal needs no
// audio. Many clients read the response only after they have sent everything
// (Python's urllib and requests), and if the connection is closed meanwhile,
// they report "broken pipe" instead of the response. So the server sends the
// response early, for clients that look for it (curl, Go, Node), and continues
// to read and discard the body for other clients, within these limits.
const (
	lingerBytes   = 256 << 20 // discarded after one response: more than the largest accepted body
	lingerTime    = 2 * time.Minute
	lingerSilence = 5 * time.Second // without a byte
	// drainBytes is the largest body that is read to its end before the
	// response, to reuse the connection; drainTime limits the wait.
	drainBytes = maxSmallBody
	drainTime  = time.Second
)

// guardBodies puts every request body, read or not, under the deadline of a
// pacedBody, and lets a response reach a client that is still sending.
func (s *Server) guardBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.ContentLength == 0 { // NoBody is of HTTP/1 alone
			h.ServeHTTP(w, r)
			return
		}
		if len(r.TransferEncoding) > 0 {
			// A chunked body may also have had a length, which net/http removes
			// but a proxy may have used. Nothing after such a body may be taken
			// for a request (RFC 9112, 6.1).
			w.Header().Set("Connection", "close")
		}
		ctl := http.NewResponseController(w)
		// Without full duplex, the first byte of a response waits for the body.
		_ = ctl.EnableFullDuplex()
		body := &pacedBody{ReadCloser: r.Body, ctl: ctl, start: time.Now(), grace: s.cfg.BodyGrace, rate: s.cfg.MinBodyRate}
		body.extend()
		r.Body = body
		small := r.ContentLength > 0 && r.ContentLength <= drainBytes && r.Header.Get("Expect") == ""
		h.ServeHTTP(&earlyWriter{ResponseWriter: w, body: body, small: small, close: r.ProtoMajor == 1}, r)
		if !body.ended && !body.dead && ctl.Flush() == nil { // the response is sent
			body.drain(time.Now().Add(lingerTime), lingerBytes, lingerSilence)
		}
	})
}

// earlyWriter announces the connection's end in a response sent before the body
// was read: its rest must never be taken for the next request. In HTTP/2, it
// cannot be, and the connection has other requests.
type earlyWriter struct {
	http.ResponseWriter
	body                *pacedBody
	small, close, begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *earlyWriter) WriteHeader(status int) {
	if !w.begun && status >= 200 {
		w.begun = true
		if w.small {
			w.body.drain(time.Now().Add(drainTime), drainBytes, drainTime)
		}
		if w.close && !w.body.ended {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *earlyWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w *earlyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var discardBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// drain discards the body until it ends, but at most most bytes, and not after
// the time until or after a silence of this duration.
func (b *pacedBody) drain(until time.Time, most int64, silence time.Duration) {
	buffer := discardBuffers.Get().(*[32 << 10]byte)
	defer discardBuffers.Put(buffer)
	for most > 0 && !b.ended && !b.dead {
		limit := time.Now().Add(silence)
		if until.Before(limit) {
			limit = until
		}
		_ = b.ctl.SetReadDeadline(limit)
		n, _ := b.read(buffer[:])
		most -= int64(n)
	}
}
