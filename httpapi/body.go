package httpapi

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Limits on request bodies, in bytes.
const (
	// MaxSubmitBody is the largest body of POST /tasks: the specification's 200 MB, read as MiB.
	MaxSubmitBody = 200 << 20
	// MaxUploadBody is the largest body of POST /audio/transcriptions.
	MaxUploadBody = MaxSubmitBody
	maxBatchBody  = 8 << 20
	maxSmallBody  = 64 << 10
	maxCaptured   = 1 << 20 // one field of POST /tasks other than audio_base64
)

// pacedBody reads a request body under a deadline that moves with what has
// come: BodyGrace from the start, and a second more for every MinBodyRate bytes. A
// client that trickles is cut off, one with a slow line isn't.
type pacedBody struct {
	r     io.ReadCloser
	ctl   *http.ResponseController
	start time.Time
	grace time.Duration
	rate  int64
	got   int64
}

func (b *pacedBody) Read(p []byte) (int, error) {
	limit := b.start.Add(b.grace + time.Duration(float64(b.got)/float64(b.rate)*float64(time.Second)))
	// A writer that knows no deadlines (a test's recorder) has no connection to guard.
	_ = b.ctl.SetReadDeadline(limit)
	n, err := b.r.Read(p)
	b.got += int64(n)
	if err == io.EOF {
		// Whatever the handler still does takes its own time: a deadline left
		// standing would end the connection, and the request with it.
		_ = b.ctl.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *pacedBody) Close() error { return b.r.Close() }

// body prepares the request's body: at most max bytes, at a decent pace. A
// Content-Length above max is refused before a byte is read.
func (s *Server) body(w http.ResponseWriter, r *http.Request, max int64) (io.Reader, error) {
	if r.ContentLength > max {
		return nil, tooLarge(max)
	}
	ctl := http.NewResponseController(w)
	paced := &pacedBody{r: r.Body, ctl: ctl, start: time.Now(), grace: s.cfg.BodyGrace, rate: s.cfg.MinBodyRate}
	r.Body = http.MaxBytesReader(w, paced, max)
	return r.Body, nil
}

// wantJSON refuses bodies that say they are something else than JSON. A body
// without a type is taken for what it must be here.
func wantJSON(r *http.Request) error {
	types := r.Header.Values("Content-Type")
	if len(types) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	if err != nil || len(types) > 1 || kind != "application/json" || (given && !strings.EqualFold(charset, "utf-8")) {
		return unsupportedType("application/json")
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		out := unsupportedType("application/json")
		out.Message = "a compressed body is not taken: leave out Content-Encoding"
		return out
	}
	return nil
}
