package fetch

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer returns a response with header fields, given as pairs.
func answer(status int, length int64, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Status: http.StatusText(status), ContentLength: length, Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestHeadersOfAResumedRequest(t *testing.T) {
	for _, tt := range []struct {
		name       string
		d          Resumption
		from, only string
	}{
		{"beginning", Resumption{Validator: `"a"`}, "", ""},
		{"going on", Resumption{Have: 5, Validator: `"a"`}, "bytes=5-", `"a"`},
		{"no validator", Resumption{Have: 5}, "", ""},
	} {
		h := http.Header{}
		tt.d.Ask(h)
		assert.Equal(t, tt.from, h.Get("Range"), tt.name)
		assert.Equal(t, tt.only, h.Get("If-Range"), tt.name)
		assert.Equal(t, "identity", h.Get("Accept-Encoding"), tt.name)
	}
}

func TestPartsThatContinueADownload(t *testing.T) {
	begun := Resumption{Have: 5, Total: 10, Validator: `"a"`}
	for _, tt := range []struct {
		name   string
		before Resumption
		r      *http.Response
		part   Part
		after  Resumption
	}{
		{"first answer", Resumption{Total: -1}, answer(200, 10, "ETag", `"a"`), PartWhole, Resumption{Total: 10, Validator: `"a"`}},
		{"length unknown", Resumption{Total: -1}, answer(200, -1, "ETag", `"a"`), PartWhole, Resumption{Total: -1, Validator: `"a"`}},
		{"weak tag and a date", Resumption{}, answer(200, 10, "ETag", `W/"a"`, "Last-Modified", "Mon"), PartWhole, Resumption{Total: 10, Validator: "Mon"}},
		{"rest", begun, answer(206, 5, "ETag", `"a"`, "Content-Range", "bytes 5-9/10"), PartRest, begun},
		{"size unknown", begun, answer(206, 5, "ETag", `"a"`, "Content-Range", "bytes 5-9/*"), PartRest, begun},
		{"size told late", Resumption{Have: 5, Total: -1, Validator: `"a"`}, answer(206, 5, "ETag", `"a"`, "Content-Range", "bytes 5-9/10"), PartRest, begun},
		{"changed", begun, answer(200, 8, "ETag", `"b"`), PartWhole, Resumption{Total: 8, Validator: `"b"`}},
		{"all there", Resumption{Have: 10, Total: 10, Validator: `"a"`}, answer(416, 0, "Content-Range", "bytes */10"), PartNothing, Resumption{Have: 10, Total: 10, Validator: `"a"`}},
	} {
		d := tt.before
		part, err := d.Accept(tt.r)
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.part, part, tt.name)
		assert.Equal(t, tt.after, d, tt.name)
	}
}

// TestAcceptNeverJoinsTwoVersions checks each sign that the rest belongs to
// different content or another offset.
func TestAcceptNeverJoinsTwoVersions(t *testing.T) {
	for name, r := range map[string]*http.Response{
		"other tag":    answer(206, 5, "ETag", `"b"`, "Content-Range", "bytes 5-9/10"),
		"no tag":       answer(206, 5, "Content-Range", "bytes 5-9/10"),
		"other size":   answer(206, 5, "ETag", `"a"`, "Content-Range", "bytes 5-10/11"),
		"other place":  answer(206, 6, "ETag", `"a"`, "Content-Range", "bytes 4-9/10"),
		"not the end":  answer(206, 2, "ETag", `"a"`, "Content-Range", "bytes 5-6/10"),
		"no range":     answer(206, 5, "ETag", `"a"`),
		"shorter now":  answer(416, 0, "Content-Range", "bytes */3"),
		"silent 416":   answer(416, 0),
		"strange unit": answer(206, 5, "ETag", `"a"`, "Content-Range", "lines 5-9/10"),
	} {
		d := Resumption{Have: 5, Total: 10, Validator: `"a"`}
		_, err := d.Accept(r)
		assert.ErrorIs(t, err, ErrRestart, name)
	}
}

func TestStatusError(t *testing.T) {
	for code, temporary := range map[int]bool{404: false, 403: false, 416: false, 206: false, 408: true, 425: true, 429: true, 500: true, 503: true} {
		var d Resumption
		_, err := d.Accept(answer(code, 0))
		var status *StatusError
		require.ErrorAs(t, err, &status)
		assert.Equal(t, temporary, status.Temporary(), "%d", code)
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 5-9/10", "bytes 5-9/*", "bytes */10", "bytes -1-5/6", "bytes 5-9", "bytes 9-5/10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, size, ok := contentRange(s)
		if ok && (first < -1 || size < -1 || size >= 0 && first >= size && size > 0) {
			t.Fatalf("%q gives %d of %d", s, first, size)
		}
	})
}
