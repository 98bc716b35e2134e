package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEncoderIsStandardBase64(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 24<<10 - 1, 24 << 10, 24<<10 + 1, 100_003} {
		raw := bytes.Repeat([]byte{1, 200, 7, 9, 255}, n/5+1)[:n]
		for name, from := range map[string]io.Reader{"whole": bytes.NewReader(raw), "by halves": iotest.HalfReader(bytes.NewReader(raw)), "error at the end": iotest.DataErrReader(bytes.NewReader(raw))} {
			got, err := io.ReadAll(newUpload([]byte("<"), from, ">"))
			require.NoError(t, err)
			require.Equal(t, "<"+base64.StdEncoding.EncodeToString(raw)+">", string(got), "%d bytes, %s", n, name)
		}
	}
	broken := errors.New("broken")
	_, err := io.ReadAll(newUpload(nil, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), ">"))
	require.ErrorIs(t, err, broken)
}

// TestUploadIsRepeatedWhole checks that an upload is retried from the
// beginning, under the same idempotency key.
func TestUploadIsRepeatedWhole(t *testing.T) {
	audio := bytes.Repeat([]byte("RIFF"), 50_000)
	var keys []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) < 3 {
			_, _ = io.CopyN(io.Discard, r.Body, 10_000)
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error": "too many requests", "error_code": "rate_limited"}`)
			return
		}
		var body struct {
			Audio    []byte `json:"audio_base64"`
			Filename string `json:"audio_filename"`
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		assert.Equal(t, audio, body.Audio)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id": "1", "status": "processing", "audio_filename": %q}`, body.Filename)
	}))
	defer srv.Close()
	c, err := New(srv.URL+"/v1/", "asr_key")
	require.NoError(t, err)
	task, err := c.Upload(context.Background(), bytes.NewReader(audio), Submission{Filename: "a.wav"})
	require.NoError(t, err)
	assert.Equal(t, "a.wav", task.Filename)
	require.Len(t, keys, 3)
	assert.NotEmpty(t, keys[0])
	assert.Equal(t, []string{keys[0], keys[0]}, keys[1:])

	keys = nil
	_, err = c.Upload(context.Background(), io.MultiReader(bytes.NewReader(audio)), Submission{Filename: "a.wav"})
	var failed *Error
	require.ErrorAs(t, err, &failed, "unrepeatable bodies are not retried")
	assert.True(t, failed.Temporary())
	assert.Len(t, keys, 1)
	_, err = c.Upload(context.Background(), bytes.NewReader(audio), Submission{})
	assert.ErrorContains(t, err, "Filename")
}

func TestErrorsContainTheResponse(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter){
		"balance": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, `{"error": "not enough", "error_code": "insufficient_balance"}`)
		},
		"proxy": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<h1>Bad gateway</h1>")
		},
		"slow down": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error": "slow down", "error_code": "rate_limited"}`)
		},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answers[r.URL.Query().Get("status")](w) }))
	defer srv.Close()
	c, err := New(srv.URL, "asr_key")
	require.NoError(t, err)
	c.HTTP, c.Retries = srv.Client(), 0
	for name, want := range map[string]Error{
		"balance": {402, "insufficient_balance", "not enough", 0}, "proxy": {502, "", "<h1>Bad gateway</h1>", 0}, "slow down": {429, "rate_limited", "slow down", 7 * time.Second},
	} {
		_, _, err := c.Tasks(context.Background(), Status(name), 0, 0)
		var got *Error
		require.ErrorAs(t, err, &got)
		assert.Equal(t, want, *got)
	}
	for _, base := range []string{"", "asr.example.com/v1", "ftp://x", "http://", ":"} {
		_, err := New(base, "k")
		assert.ErrorContains(t, err, "base address", base)
	}
}

func TestVoices(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath())
		_, _ = io.WriteString(w, `{"voices": [{"id": "v1", "name": "Ann", "recordings": 2, "denied": 1}]}`)
	}))
	defer srv.Close()
	c, err := New(srv.URL+"/v1", "asr_key")
	require.NoError(t, err)
	voices, err := c.Voices(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []Voice{{ID: "v1", Name: "Ann", Recordings: 2, Denied: 1}}, voices)
	require.NoError(t, c.DeleteVoice(t.Context(), "a/b"))
	assert.Equal(t, []string{"GET /v1/voices", "DELETE /v1/voices/a%2Fb"}, asked)
}

// callback returns a notification signed with secret at a given time.
func callback(secret, body string, at time.Time) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
	stamp := fmt.Sprint(at.Unix())
	r.Header.Set("Webhook-Id", "msg_1")
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1,AAAA v1,"+base64.StdEncoding.EncodeToString(sum(webhookKey(secret), "msg_1."+stamp+"."+body)))
	r.Header.Set("X-Signature", fmt.Sprintf("sha256=%x", sum([]byte(secret), body)))
	return r
}

func TestReadCallback(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	const body = `{"task_id":"7","status":"failed","created_at":"2026-01-02T03:04:05.000Z","finished_at":null,"error_message":"too long"}`
	for _, secret := range []string{"a secret of ours", "whsec_" + base64.StdEncoding.EncodeToString([]byte("raw bytes"))} {
		c, err := readCallback(callback(secret, body, now), now.Add(time.Minute), []string{"the new one", secret})
		require.NoError(t, err)
		assert.Equal(t, []any{"7", Failed, "too long"}, []any{c.TaskID, c.Status, *c.ErrorMessage})
	}
	change := func(name, value string) *http.Request {
		r := callback("s", body, now)
		r.Header.Set(name, value)
		return r
	}
	for name, r := range map[string]*http.Request{
		"another secret": callback("t", body, now), "replayed": callback("s", body, now.Add(-time.Hour)), "of the future": callback("s", body, now.Add(time.Hour)),
		"another id": change("Webhook-Id", "msg_2"), "no id": change("Webhook-Id", ""), "another time": change("Webhook-Timestamp", fmt.Sprint(now.Unix()+1)), "no number": change("Webhook-Timestamp", "now"),
		"no signature": change("Webhook-Signature", ""), "another version": change("Webhook-Signature", "v2,AAAA"), "another body signature": change("X-Signature", "sha256=00"), "no body signature": change("X-Signature", ""),
	} {
		_, err := readCallback(r, now, []string{"s"})
		require.ErrorIs(t, err, ErrSignature, name)
	}
	_, err := readCallback(callback("s", strings.Repeat("x", maxCallback+1), now), now, []string{"s"})
	assert.ErrorContains(t, err, "longer")
	_, err = ReadCallback(callback("s", "no JSON", now))
	assert.Error(t, err)
}

// TestFollowResumesABrokenStream checks that a broken stream is requested again
// from the last state, and that each sentence of an attempt is returned once.
func TestFollowResumesABrokenStream(t *testing.T) {
	segment := func(attempt, index int) string {
		return fmt.Sprintf("event: segment\ndata: {\"attempt\":%d,\"index\":%d,\"text\":\"%d/%d\"}\n\n", attempt, index, attempt, index)
	}
	state := func(id, status string, final bool) string {
		return fmt.Sprintf("event: task\nid: %s\ndata: {\"status\":%q,\"final\":%v}\n\n", id, status, final)
	}
	streams := []string{
		"retry: 1000\n\n" + state("a", "processing", false) + segment(1, 0) + ": still working\n\n" + segment(1, 1) + "event: other\ndata: {}\n\n" + "event: task\ndata: {",
		segment(1, 0) + segment(1, 1) + segment(1, 2) + segment(2, 0),
		segment(2, 0) + segment(2, 1) + state("b", "done", true) + state("c", "failed", true),
	}
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, streams[len(asked)])
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Last-Event-ID"))
	}))
	defer srv.Close()
	c, err := New(srv.URL+"/v1", "asr_key")
	require.NoError(t, err)
	var told []string
	for e, err := range c.Follow(t.Context(), "7") {
		require.NoError(t, err)
		if e.State != nil {
			told = append(told, string(e.State.Status))
		} else {
			told = append(told, e.Segment.Text)
		}
	}
	assert.Equal(t, []string{"processing", "1/0", "1/1", "1/2", "2/0", "2/1", "done"}, told)
	assert.Equal(t, []string{"/v1/tasks/7/events ", "/v1/tasks/7/events a", "/v1/tasks/7/events a"}, asked)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked = nil
	for _, err := range c.Follow(ctx, "7") {
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	asked = nil
	for range c.Follow(t.Context(), "7") {
		break
	}
	assert.Len(t, asked, 1, "the detector is not asked again")
}

// answers is a transport that returns its answers in turn, the last one
// repeatedly.
type answers struct {
	list  []any // a string is the body of an answer with status 200; an int is a status
	given int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	next := a.list[min(a.given, len(a.list)-1)]
	a.given++
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	switch next := next.(type) {
	case error:
		return nil, next
	case int:
		resp.StatusCode = next
	case string:
		resp.Body = io.NopCloser(strings.NewReader(next))
	}
	return resp, nil
}

// TestFollowReconnectsToARestartedService checks that a service that has
// answered before is retried for a while, and that permanent errors end Follow.
func TestFollowReconnectsToARestartedService(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	const begun, done = "event: task\ndata: {\"status\":\"processing\"}\n\n", "event: task\ndata: {\"status\":\"done\",\"final\":true}\n\n"
	for name, c := range map[string]struct {
		answers []any
		told    []Status
		fails   string // "" for no error
		lasts   time.Duration
	}{
		"restart":       {[]any{begun, refused, 502, 504, begun, refused, done}, []Status{Processing, Processing, Done}, "", 6 * followPause},
		"gone":          {[]any{begun, refused}, []Status{Processing}, "connection refused", reconnectLimit},
		"never there":   {[]any{refused, begun}, nil, "connection refused", 0},
		"not wanted":    {[]any{begun, 403}, []Status{Processing}, "403", followPause},
		"empty streams": {[]any{begun, ""}, []Status{Processing}, "expected server-sent events, found none in 30 answers in a row", maxEmptyStreams * followPause},
		"a page":        {[]any{"<html>\n\n<p>Please log in: here</p>\n"}, nil, "found none in 30 answers", (maxEmptyStreams - 1) * followPause},
		"long queue":    {append(append([]any{begun, ": no news\n\n"}, slices.Repeat([]any{"", ": no news\n\n"}, 40)...), done), []Status{Processing, Done}, "", 82 * followPause},
		"no end of it":  {[]any{begun + "data: " + strings.Repeat("x", maxEvent)}, []Status{Processing}, "longer than 1048576 bytes", 0},
		"broken events": {[]any{"event: task\ndata: {\n\n", done}, nil, "event of task 7", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, err := New("http://asr.example.com/v1", "asr_key")
			require.NoError(t, err)
			client.HTTP, client.Retries = &http.Client{Transport: &answers{list: c.answers}}, 0
			from := time.Now()
			var told []Status
			var failed error
			for e, err := range client.Follow(t.Context(), "7") {
				if failed = err; err == nil {
					told = append(told, e.State.Status)
				}
			}
			assert.Equal(t, c.told, told, name)
			assert.Equal(t, c.lasts, time.Since(from), name)
			if c.fails == "" {
				assert.NoError(t, failed, name)
			} else {
				assert.ErrorContains(t, failed, c.fails, name)
			}
		})
	}
}
