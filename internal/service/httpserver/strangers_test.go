package httpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/taskstest"
)

// oddValues are JSON values that are rarely valid.
var oddValues = []string{
	`null`, `true`, `false`, `0`, `-1`, `1.5`, `1e308`, `1e400`, `-1e400`, `99999999999999999999999999`, `0.0000000000000000000000001`, `"x"`, `""`, `" "`,
	`"\u0000"`, `"\ud800"`, `"é"`, "\"\xff\"", `"` + strings.Repeat("a", 10_000) + `"`, `[]`, `[[]]`, `[null]`, `[1,"a"]`, `{}`, `{"a":1}`, `{"a":{"a":{"a":{}}}}`,
	strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), `NaN`, `Infinity`, `0x10`, `01`, `'x'`, `undefined`, `True`, ``,
}

// TestOddValuesAreRefused sends every odd value in every field, and malformed
// bodies and requests: each gets a 4xx in JSON or makes a task. It covers T21
// of test/README.md.
func TestOddValuesAreRefused(t *testing.T) {
	w := newWorld(t)
	_, broke := w.newAccount("broke", "0") // so that valid requests get 402
	as := with("X-Api-Key", broke)
	n := 0
	statuses := map[int]int{}
	send := func(method, path string, body any, headers ...http.Header) {
		t.Helper()
		a := w.do(method, path, body, append([]http.Header{as}, headers...)...)
		n++
		statuses[a.status]++
		if !assert.True(t, a.status >= 400 && a.status < 500, "%s %s: %d %.200s", method, path, a.status, a.body) {
			return
		}
		assert.NotEmpty(t, a.code(t))
		assert.Less(t, len(a.body), 2000)
	}
	taskFields := []string{"audio_url", "audio_base64", "audio_filename", "options", "callback_url", "callback_secret", "batch_mode", "allow_training", "unknown", ""}
	for _, f := range taskFields {
		for _, v := range oddValues {
			send("POST", "/tasks", `{"`+f+`":`+v+`}`)
			if f != "audio_url" {
				send("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav","`+f+`":`+v+`}`)
			}
			if f != "audio_base64" && f != "audio_filename" {
				send("POST", "/tasks", `{"audio_base64":"UklGRg==","audio_filename":"a.wav","`+f+`":`+v+`}`)
			}
		}
	}
	for f := range taskstest.OptionDefaults {
		for _, v := range oddValues {
			send("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav","options":{"`+f+`":`+v+`}}`)
		}
	}
	for _, v := range oddValues {
		send("POST", "/tasks", v)
		send("POST", "/tasks/batch", v)
		send("POST", "/auth/login", v)
	}
	for _, f := range []string{"audio_filename", "options", "callback_url", "callback_secret", "unknown"} {
		for _, v := range oddValues {
			a := w.do("POST", "/tasks/batch", `{"batch_mode":true,"audio_url":["https://a.example.com/a.wav"],"`+f+`":`+v+`}`, as)
			n++
			statuses[a.status]++
			assert.True(t, a.status == 400 || a.status == 201 && a.object(t)["created_count"].(float64) == 0, "%s %.50s: %d %s", f, v, a.status, a.body)
		}
	}
	for _, v := range oddValues {
		if !strings.ContainsAny(v, " \"") && len(v) < 100 {
			send("GET", "/tasks?page="+v+"&status=x", nil)
			send("GET", "/tasks/"+strings.Trim(strings.ReplaceAll(v, "/", ""), ".")+"/result", nil)
		}
	}
	for _, name := range []string{"../../etc/passwd", "a\nb.wav", "\x1b[2J", strings.Repeat("x", 256)} {
		text, _ := json.Marshal(name)
		a := w.do("POST", "/tasks", `{"audio_base64":"UklGRg==","audio_filename":`+string(text)+`}`, as)
		assert.True(t, a.status == 400 || a.status == 402, "%q %d", name, a.status)
	}
	t.Logf("T21: %d strange requests, statuses %v, no 5xx", n, statuses)

	// None of the requests left a task or a file behind.
	assert.EqualValues(t, 0, w.do("GET", "/tasks", nil, as).object(t)["total"])
	assert.Empty(t, blobKeys(t, w))
}

// TestRawRequests sends requests that no HTTP library sends. It covers T21 of
// test/README.md.
func TestRawRequests(t *testing.T) {
	w := newWorld(t)
	addr := strings.TrimPrefix(w.url, "http://")
	for name, raw := range map[string]string{
		"absolute path of another": "GET http://evil.example.com/v1/account HTTP/1.1\r\nHost: x\r\n\r\n",
		"asterisk":                 "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"connect":                  "CONNECT 10.0.0.1:80 HTTP/1.1\r\nHost: 10.0.0.1:80\r\n\r\n",
		"dots":                     "GET /v1/tasks/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
		"encoded dots":             "GET /v1/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
		"two slashes":              "GET //v1//tasks HTTP/1.1\r\nHost: x\r\n\r\n",
		"odd method":               "G\xc3\x84T /v1/tasks HTTP/1.1\r\nHost: x\r\n\r\n",
		"long path":                "GET /v1/" + strings.Repeat("a", 100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"wrong chunks":             "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nX-API-Key: " + w.key + "\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"short body":               "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nX-API-Key: " + w.key + "\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{}",
		"body with GET":            "GET /v1/account HTTP/1.1\r\nHost: x\r\nX-API-Key: " + w.key + "\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
	} {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = io.WriteString(conn, raw)
		require.NoError(t, err)
		if c, ok := conn.(*net.TCPConn); ok && name == "short body" {
			require.NoError(t, c.CloseWrite())
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if name == "short body" && err != nil { // a client that disconnects may get no response
			conn.Close()
			continue
		}
		require.NoError(t, err, name)
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		assert.Less(t, resp.StatusCode, 500, name)
		if resp.StatusCode >= 400 && resp.Header.Get("Content-Type") == "application/json" {
			assert.Contains(t, string(body), `"error"`, name)
		}
		if name != "body with GET" {
			assert.GreaterOrEqual(t, resp.StatusCode, 400, name)
		}
		conn.Close()
	}
}

// TestLengthWithChunksEndsTheConnection: a request with both a length and
// chunks is the last one of its connection, so that a proxy and the service
// cannot disagree about where the next request begins.
func TestLengthWithChunksEndsTheConnection(t *testing.T) {
	w := newWorld(t)
	const smuggled = "GET /v1/pricing HTTP/1.1\r\nHost: x\r\n\r\n"
	const task = `{"audio_url":"https://a.example.com/a.wav"}`
	whole := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(task), task)
	for name, tt := range map[string]struct {
		header string
		body   string
		status int
	}{
		"both":              {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", whole + smuggled, 201},
		"chunks first":      {"Transfer-Encoding: chunked\r\nContent-Length: 100\r\n", whole + smuggled, 201},
		"a wrong length":    {"Content-Length: 0\r\nTransfer-Encoding: Chunked\r\n", whole + smuggled, 201},
		"two lengths":       {"Content-Length: 4\r\nContent-Length: 2\r\n", "{}" + smuggled, 400},
		"no number":         {"Content-Length: +2\r\n", "{}" + smuggled, 400},
		"chunks twice":      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + smuggled, 501},
		"chunks in another": {"Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n" + smuggled, 501},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		require.NoError(t, err)
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, err = io.WriteString(conn, "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nX-API-Key: "+w.key+"\r\n"+tt.header+"\r\n"+tt.body)
		require.NoError(t, err)
		reader := bufio.NewReader(conn)
		resp, err := http.ReadResponse(reader, nil)
		require.NoError(t, err, name)
		assert.Equal(t, tt.status, resp.StatusCode, name)
		_, _ = io.Copy(io.Discard, resp.Body)
		assert.True(t, resp.Close, name)
		_, err = http.ReadResponse(reader, nil)
		assert.Error(t, err, "%s: another request was answered", name)
		conn.Close()
	}
}

// TestSlowBodies: a client that sends too slowly is cut off with 408; a slow
// but steady one is not.
func TestSlowBodies(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BodyGrace, c.MinBodyRate = 300*time.Millisecond, 1000 })
	trickle := func(pause time.Duration, chunk, n int) answer {
		r, pw := io.Pipe()
		go func() {
			_, _ = io.WriteString(pw, `{"audio_filename":"a.wav","audio_base64":"`)
			for range n {
				if _, err := io.WriteString(pw, strings.Repeat("A", chunk)); err != nil {
					return
				}
				time.Sleep(pause)
			}
			_, _ = io.WriteString(pw, `"}`)
			pw.Close()
		}()
		return w.do("POST", "/tasks", r)
	}
	a := trickle(50*time.Millisecond, 4, 400)
	assert.Equal(t, 408, a.status)
	assert.Equal(t, codeInvalidRequest, a.code(t))
	assert.Equal(t, 201, trickle(40*time.Millisecond, 4000, 20).status, "longer than the grace, at a rate that no pause of the machine lowers enough")

	// The connection of a slow request serves the next one, and a handler's own
	// time is not limited by its body's deadline.
	assert.Equal(t, 200, w.do("GET", "/account", nil).status)
}

// TestUploadsAreStreamed sends a large body over HTTP and measures the server's
// heap: it never holds the audio.
func TestUploadsAreStreamed(t *testing.T) {
	w := newWorld(t)
	const size = 16 << 20
	stop := make(chan struct{})
	var peak uint64
	var wg sync.WaitGroup
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base := m.HeapInuse
	wg.Go(func() {
		var m runtime.MemStats
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			}
		}
	})
	a := w.do("POST", "/tasks", endless(size))
	close(stop)
	wg.Wait()
	require.Equal(t, 201, a.status, "%s", a.body)
	assert.EqualValues(t, size/4*3, a.object(t)["audio_size"])
	growth := int64(peak) - int64(base)
	assert.Less(t, growth, int64(8<<20))
	t.Logf("%d MB of Base64 over HTTP: heap grew by at most %.1f MB", size>>20, float64(growth)/(1<<20))
}

// TestTooLargeBodies: a body above the limit gets 413, with and without
// Content-Length.
func TestTooLargeBodies(t *testing.T) {
	w := newWorld(t)
	a := w.do("POST", "/tasks/batch", io.MultiReader(strings.NewReader(`{"options":{}, `), io.LimitReader(repeat(strings.Repeat(" ", 4096)), maxBatchBody)))
	assert.Equal(t, 413, a.status)
	assert.Equal(t, codePayloadTooLarge, a.code(t))
	a = w.do("POST", "/auth/login", bytes.Repeat([]byte(" "), maxSmallBody+1))
	assert.Equal(t, 413, a.status)
	a = w.do("POST", "/tasks", io.LimitReader(repeat(strings.Repeat(" ", 4096)), 4<<20))
	assert.Equal(t, 400, a.status, "spaces alone")
}

// TestDiscardedUploadsLeaveNothing: a request refused for any reason after its
// audio leaves no file.
func TestDiscardedUploadsLeaveNothing(t *testing.T) {
	w := newWorld(t)
	_, broke := w.newAccount("broke", "0")
	for _, body := range []string{
		`{"audio_base64":"UklGRg==","audio_filename":"a.wav","unknown":1}`, `{"audio_base64":"UklGRg=="}`, `{"audio_base64":"UklGRg`, `{"audio_base64":"UklGR!"`,
		`{"audio_base64":"UklGRg==","audio_url":"https://a.example.com/"}`, `{"audio_base64":"","audio_filename":"a.wav"}`,
		`{"audio_base64":"UklGRg==","audio_filename":"a.wav","callback_url":"http://10.0.0.1/"}`, `{"audio_base64":"UklGRg==","audio_filename":"a.wav","options":{"x":1}}`,
		`{"audio_base64":"UklGRg==","audio_filename":"a.wav"}`,
	} {
		a := w.do("POST", "/tasks", body, with("X-Api-Key", broke))
		require.GreaterOrEqual(t, a.status, 400, body)
	}
	assert.Empty(t, blobKeys(t, w))
	w.create(upload(nil))
	assert.Len(t, blobKeys(t, w), 1)
}
