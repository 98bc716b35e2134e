// Package resume goes on with an HTTP download where a connection ended, if the
// source still has the same content. It decides what to ask and what an answer
// means; reading, keeping and waiting are the caller's.
package resume

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ErrRestart is returned for an answer that cannot be joined with the bytes that
// are there: they must be thrown away.
var ErrRestart = errors.New("start again")

// StatusError is an answer without content.
type StatusError struct {
	Code   int
	Status string // with the text, "404 Not Found"
}

// Error implements error.
func (e *StatusError) Error() string { return "the source answers " + e.Status }

// Temporary reports whether the same request may succeed later.
func (e *StatusError) Temporary() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Code >= 500
}

// Download is how far a download is, and what its bytes are of.
type Download struct {
	Have  int64 // bytes that are there
	Total int64 // bytes that the source announced; -1 if it did not
	// Validator is what the source must still have, as Validator returns it; ""
	// if the download cannot be resumed.
	Validator string
}

// Part is what the body of an answer holds.
type Part int

// The parts.
const (
	Whole   Part = iota // all of it: bytes that are there must be thrown away
	Rest                // what is missing
	Nothing             // nothing: all bytes are there
)

// Ask adds to a request's header what is wanted: everything, or what is missing.
func (d *Download) Ask(h http.Header) {
	// Compressed in transit, neither ranges nor lengths would be the content's.
	h.Set("Accept-Encoding", "identity")
	if d.Have > 0 && d.Validator != "" {
		h.Set("Range", "bytes="+strconv.FormatInt(d.Have, 10)+"-")
		h.Set("If-Range", d.Validator)
	}
}

// Accept reads the status and the header of the answer to a request that Ask
// prepared, and takes down what they say. For Whole, Have is 0 afterwards. The
// error wraps ErrRestart, or is a *StatusError.
func (d *Download) Accept(r *http.Response) (Part, error) {
	switch {
	case r.StatusCode == http.StatusOK:
		// The first request, a source that changed, or one that knows no ranges.
		d.Have, d.Total, d.Validator = 0, r.ContentLength, Validator(r.Header)
		return Whole, nil
	case r.StatusCode == http.StatusPartialContent && d.Have > 0:
		text := r.Header.Get("Content-Range")
		first, size, ok := contentRange(text)
		if !ok || first != d.Have || d.Total >= 0 && size >= 0 && size != d.Total || Validator(r.Header) != d.Validator {
			return Rest, fmt.Errorf("%w: the source answered the range from byte %d with another one (%.80q) or with other content", ErrRestart, d.Have, text)
		}
		if d.Total < 0 {
			d.Total = size
		}
		return Rest, nil
	case r.StatusCode == http.StatusRequestedRangeNotSatisfiable && d.Have > 0:
		if _, size, ok := contentRange(r.Header.Get("Content-Range")); ok && size == d.Have {
			return Nothing, nil
		}
		return Whole, fmt.Errorf("%w: the source has no byte %d", ErrRestart, d.Have)
	}
	return Whole, &StatusError{Code: r.StatusCode, Status: r.Status}
}

// Validator returns what If-Range can compare: a strong ETag, else the
// Last-Modified date, else nothing.
func Validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) && len(tag) <= 1024 {
		return tag
	}
	return h.Get("Last-Modified")
}

// contentRange reads "bytes 5-9/10", where the size may be "*" (-1), and
// "bytes */10", where first is -1. A range must reach to the end.
func contentRange(text string) (first, size int64, ok bool) {
	text, isBytes := strings.CutPrefix(text, "bytes ")
	span, total, found := strings.Cut(text, "/")
	if !isBytes || !found {
		return 0, 0, false
	}
	size = -1
	if total != "*" {
		n, err := strconv.ParseInt(total, 10, 64)
		if err != nil || n < 0 {
			return 0, 0, false
		}
		size = n
	}
	if span == "*" {
		return -1, size, size >= 0
	}
	from, to, found := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	return first, size, found && err1 == nil && err2 == nil && first >= 0 && first <= last && (size < 0 || last == size-1)
}
