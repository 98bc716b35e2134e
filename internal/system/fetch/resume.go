package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ErrRestart is returned for a response that can't be joined with the existing
// bytes; they must be discarded.
var ErrRestart = errors.New("start again")

// StatusError is a response without content.
type StatusError struct {
	Code   int
	Status string // including the text, "404 Not Found"
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

// Resumption is the state of a download and identifies its content.
type Resumption struct {
	Have  int64 // bytes downloaded so far
	Total int64 // size announced by the source; -1 if it did not announce one
	// Validator is the validator that the source's content must still have, as
	// returned by the function Validator; "" if the download can't be resumed.
	Validator string
}

// Part is the content of a response's body.
type Part int

// The parts.
const (
	PartWhole   Part = iota // everything: existing bytes must be discarded
	PartRest                // the missing part
	PartNothing             // nothing: the download is already complete
)

// Ask adds the range to a header: everything, or the missing part.
func (d *Resumption) Ask(h http.Header) {
	// Compressed ranges and lengths would not refer to the content.
	h.Set("Accept-Encoding", "identity")
	if d.Have > 0 && d.Validator != "" {
		h.Set("Range", "bytes="+strconv.FormatInt(d.Have, 10)+"-")
		h.Set("If-Range", d.Validator)
	}
}

// Accept reads the status and the header of the response to a request that Ask
// prepared, and updates the state. For PartWhole, Have is 0 afterwards. The
// error wraps ErrRestart, or is a *StatusError.
func (d *Resumption) Accept(r *http.Response) (Part, error) {
	switch {
	case r.StatusCode == http.StatusOK:
		// The first request, a changed source, or one without ranges.
		d.Have, d.Total, d.Validator = 0, r.ContentLength, Validator(r.Header)
		return PartWhole, nil
	case r.StatusCode == http.StatusPartialContent && d.Have > 0:
		text := r.Header.Get("Content-Range")
		first, size, ok := contentRange(text)
		if !ok || first != d.Have || d.Total >= 0 && size >= 0 && size != d.Total || Validator(r.Header) != d.Validator {
			return PartRest, fmt.Errorf("%w: the source answered the range from byte %d with another one (%.80q) or with other content", ErrRestart, d.Have, text)
		}
		if d.Total < 0 {
			d.Total = size
		}
		return PartRest, nil
	case r.StatusCode == http.StatusRequestedRangeNotSatisfiable && d.Have > 0:
		if _, size, ok := contentRange(r.Header.Get("Content-Range")); ok && size == d.Have {
			return PartNothing, nil
		}
		return PartWhole, fmt.Errorf("%w: the source has no byte %d", ErrRestart, d.Have)
	}
	return PartWhole, &StatusError{Code: r.StatusCode, Status: r.Status}
}

// Validator returns the value for If-Range: a strong ETag, otherwise the
// Last-Modified date, otherwise "".
func Validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) && len(tag) <= 1024 {
		return tag
	}
	return h.Get("Last-Modified")
}

// contentRange parses "bytes 5-9/10", where the size may be "*" (-1), and
// "bytes */10", where first is -1. A range must extend to the end.
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
