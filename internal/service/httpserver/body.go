package httpserver

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/spec"
)

// Limits on request bodies, in bytes.
const (
	// maxSubmitBody is the largest body of POST /tasks: the specification's 200
	// MB, read as MiB.
	maxSubmitBody = 200 << 20
	// maxUploadBody is the largest body of POST /audio/transcriptions.
	maxUploadBody = maxSubmitBody
	maxBatchBody  = 8 << 20
	maxSmallBody  = 64 << 10
	maxCaptured   = 1 << 20 // one field of POST /tasks other than audio_base64
)

// pacedBody reads a request body with a deadline that moves with the bytes
// received: grace from the start, and one more second for every rate bytes.
// This cuts off a client that sends too slowly, but not a steady one on a slow
// line. The deadline is set when the request begins, so it also ends the
// connection of a body that never arrives and is not read.
type pacedBody struct {
	io.ReadCloser
	ctl       *http.ResponseController
	start     time.Time
	grace     time.Duration
	rate, got int64
	ended     bool // the body was read to its end
	dead      bool // reading failed: the connection cannot be used again
}

// extend sets the deadline for the bytes received so far.
func (b *pacedBody) extend() {
	limit := b.start.Add(b.grace + time.Duration(float64(b.got)/float64(b.rate)*float64(time.Second)))
	// A writer without deadlines (a test's recorder) has no connection.
	_ = b.ctl.SetReadDeadline(limit)
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	b.extend()
	return b.read(p)
}

// read reads under the current deadline.
func (b *pacedBody) read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	switch err {
	case nil:
	case io.EOF:
		b.ended = true
		// The handler's own time is not limited by the body's deadline: if left
		// in place, it would end the connection and with it the request.
		_ = b.ctl.SetReadDeadline(time.Time{})
	default:
		b.dead = true
	}
	return n, err
}

// limitedBody returns the request's body, limited to max bytes. A
// Content-Length above max is refused before a byte is read, as is a compressed
// body.
func limitedBody(w http.ResponseWriter, r *request, max int64) (io.Reader, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, unsupported("compressed request bodies are not supported: omit Content-Encoding: " + spec.Shorten(e))
	}
	if r.ContentLength > max {
		return nil, tooLarge(max)
	}
	r.Body = http.MaxBytesReader(w, r.Body, max)
	return r.Body, nil
}

// jsonBody is like limitedBody, for JSON; a body without a type counts as JSON.
func jsonBody(w http.ResponseWriter, r *request, max int64) (io.Reader, error) {
	types := r.Header.Values("Content-Type")
	if len(types) == 0 {
		return limitedBody(w, r, max)
	}
	kind, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	if err != nil || len(types) > 1 || kind != "application/json" || (given && !strings.EqualFold(strings.Replace(charset, "-", "", 1), "utf8")) {
		return nil, unsupported("Content-Type must be application/json in UTF-8")
	}
	return limitedBody(w, r, max)
}

// readBody reads the request's body, a JSON object with the given fields, of at
// most max bytes.
func readBody(w http.ResponseWriter, r *request, max int, fields jsonstream.Fields) error {
	body, err := jsonBody(w, r, int64(max))
	if err != nil {
		return err
	}
	return jsonstream.ReadObject(body, max, fields)
}

// text reads a string of at most max characters.
func text(into *string, max int) func(*jsonstream.Value) error {
	return func(v *jsonstream.Value) error { return v.Text(into, max) }
}

// decoded reads a value of JSON; wrong is the reason for a refusal.
func decoded[T any](into *T, wrong string) func(*jsonstream.Value) error {
	return func(v *jsonstream.Value) error {
		raw, err := v.Raw()
		if err == nil && json.Unmarshal(raw, into) != nil {
			err = invalid("%s", wrong)
		}
		return err
	}
}

// readError explains why a body could not be read to its end: it exceeded the
// limit, arrived too slowly, or was malformed, which message describes.
func readError(err error, message string) *apiError {
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(big.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &apiError{Status: http.StatusRequestTimeout, Code: codeInvalidRequest, Message: "the request body arrived too slowly"}
	}
	return invalidBecause(err, "%s", message) // io.EOF, a broken connection, wrong chunked encoding
}

func readOptions(v *jsonstream.Value, dst *spec.Options) error {
	raw, err := v.Raw()
	if err != nil {
		return err
	}
	if raw[0] != '{' {
		return invalid("options: must be an object, not %s", spec.Shorten(string(raw)))
	}
	var o spec.Options
	if err := o.UnmarshalJSON(raw); err != nil {
		return optionsError(err)
	}
	*dst = o
	return nil
}

func optionsError(err error) *apiError {
	prefix := ""
	if wrong, ok := errors.AsType[*spec.OptionError](err); ok && wrong.Field != "" {
		prefix = "options."
	}
	return invalidBecause(err, "%s%s", prefix, err)
}
