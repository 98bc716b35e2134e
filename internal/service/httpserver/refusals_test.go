package httpserver

import (
	"bufio"
	"errors"
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

	"github.com/otograph/otograph/internal/service/accounts"
)

// refusedRequest is a request that the service refuses whatever its body; the body
// never comes.
type refusedRequest struct {
	name   string
	head   string // the request line and headers without Host and length
	status int
}

// send writes the request's head for the host.
func (r refusedRequest) send(c net.Conn, host string) error {
	length := "Content-Length: 1000\r\n"
	if strings.Contains(r.head, "Content-Length") || strings.Contains(r.head, "Transfer-Encoding") {
		length = ""
	}
	if !strings.Contains(r.head, "Host:") {
		length += "Host: " + host + "\r\n"
	}
	line, headers, _ := strings.Cut(r.head, "\r\n")
	if headers != "" {
		headers += "\r\n"
	}
	_, err := io.WriteString(c, line+" HTTP/1.1\r\n"+headers+length+"\r\n")
	return err
}

// refusals returns every kind of refused request.
func (w *world) refusals(t *testing.T) []refusedRequest {
	t.Helper()
	_, broke := w.newAccount("broke", "0")
	away, suspended := w.newAccount("away", "10")
	require.NoError(t, w.accounts.Suspend(t.Context(), away.ID))
	hasty, limited := w.newAccount("hasty", "10")
	one, slow := 1, 0.001
	require.NoError(t, w.accounts.SetLimits(t.Context(), hasty.ID, accounts.Overrides{TPS: &slow, Burst: &one}))
	require.Equal(t, 200, w.do("GET", "/account", nil, with("X-Api-Key", limited)).status, "the only token is taken")
	unknown := "asr_" + strings.Repeat("0", 40)
	as := func(key string) string { return "\r\nX-API-Key: " + key }
	const json, form = "\r\nContent-Type: application/json", "\r\nContent-Type: multipart/form-data; boundary=x"
	const large = "\r\nContent-Length: 1000000"
	const nobody = "00000000-0000-7000-8000-000000000000"
	return []refusedRequest{
		{"foreign host", "POST /v1/tasks\r\nHost: rebound.example.com", 421},
		{"foreign host, page", "GET /\r\nHost: rebound.example.com", 421},
		{"foreign host, OpenAI", "POST /v1/audio/transcriptions\r\nHost: rebound.example.com" + form, 421},
		{"foreign host, metrics", "GET /metrics\r\nHost: rebound.example.com", 421},
		{"no host", "GET /v1/pricing\r\nHost: ", 421},
		{"no key", "POST /v1/tasks" + json, 401},
		{"no key, batch", "POST /v1/tasks/batch" + json, 401},
		{"no key, voice", "POST /v1/voices" + json, 401},
		{"no key, OpenAI", "POST /v1/audio/transcriptions" + form, 401},
		{"no key, chunked", "POST /v1/tasks\r\nTransfer-Encoding: chunked", 401},
		{"no key, expecting", "POST /v1/tasks\r\nExpect: 100-continue", 401},
		{"malformed key", "POST /v1/tasks" + as("x"), 401},
		{"unknown key", "POST /v1/tasks" + as(unknown), 401},
		{"unknown key, OpenAI", "POST /v1/audio/translations" + form + "\r\nAuthorization: Bearer " + unknown, 401},
		{"unknown token", "POST /v1/tasks\r\nAuthorization: Bearer a.b.c", 401},
		{"other scheme", "POST /v1/tasks\r\nAuthorization: Basic YTpi", 401},
		{"suspended account", "POST /v1/tasks" + as(suspended), 403},
		{"key where a person is asked", "POST /v1/account/keys" + as(w.key), 403},
		{"no money", "POST /v1/tasks" + json + large + as(broke), 402},
		{"no money, OpenAI", "POST /v1/audio/transcriptions" + form + large + as(broke), 402},
		{"too many requests", "POST /v1/tasks" + json + as(limited), 429},
		{"too many requests, OpenAI", "POST /v1/audio/transcriptions" + form + as(limited), 429},
		{"content type", "POST /v1/tasks\r\nContent-Type: text/plain" + as(w.key), 415},
		{"content type, batch", "POST /v1/tasks/batch\r\nContent-Type: text/xml" + as(w.key), 415},
		{"content type, login", "POST /v1/auth/login\r\nContent-Type: text/plain", 415},
		{"content type, OpenAI", "POST /v1/audio/transcriptions" + json + as(w.key), 415},
		{"form without a boundary", "POST /v1/audio/translations\r\nContent-Type: multipart/form-data" + as(w.key), 415},
		{"character set", "POST /v1/tasks" + json + "; charset=latin1" + as(w.key), 415},
		{"compressed", "POST /v1/tasks" + json + "\r\nContent-Encoding: gzip" + as(w.key), 415},
		{"too large", "POST /v1/tasks\r\nContent-Length: 1000000000" + json + as(w.key), 413},
		{"too large, batch", "POST /v1/tasks/batch\r\nContent-Length: 1000000000" + json + as(w.key), 413},
		{"too large, login", "POST /v1/auth/login\r\nContent-Length: 1000000000" + json, 413},
		{"too large, OpenAI", "POST /v1/audio/transcriptions\r\nContent-Length: 1000000000" + form + as(w.key), 413},
		{"method", "PUT /v1/tasks" + as(w.key), 405},
		{"method, OpenAI", "PATCH /v1/audio/transcriptions" + as(w.key), 405},
		{"method, models", "DELETE /v1/models" + as(w.key), 405},
		{"method, health", "POST /healthz", 405},
		{"method, document", "POST /openapi.json", 405},
		{"foreign origin", "OPTIONS /v1/tasks\r\nOrigin: https://other.example.com\r\nAccess-Control-Request-Method: POST", 405},
		{"unknown path", "POST /v1/nothing" + as(w.key), 404},
		{"unknown path outside", "POST /nothing", 404},
		{"unclean path", "POST /v1//tasks" + as(w.key), 404},
		{"unknown task", "POST /v1/tasks/" + nobody + "/cancel" + as(w.key), 404},
		{"late body", "POST /v1/tasks" + json + as(w.key), 408},
		{"late body, login", "POST /v1/auth/login" + json, 408},
		{"late body, notes", "POST /v1/tasks/" + nobody + "/corrections" + json + as(w.key), 408},
		{"late body, OpenAI", "POST /v1/audio/transcriptions" + form + as(w.key), 408},
		{"unknown voice", "DELETE /v1/voices/" + nobody + as(w.key), 404},
		{"unknown model", "GET /v1/models/nothing" + as(w.key), 404},
		{"bad query", "GET /v1/tasks?page=x" + as(w.key), 400},
	}
}

// TestRefusalsWithoutBodies: every kind of refusal is answered although the
// body never comes, its connection is closed soon, and two thousand of them
// hold little memory.
func TestRefusalsWithoutBodies(t *testing.T) {
	const n, grace = 2000, time.Second
	w := newWorld(t, func(c *Config) {
		c.BodyGrace, c.LimitWait = grace, grace
		c.Hosts, c.Origins = []string{}, []string{"https://app.example.com"}
	})
	kinds := w.refusals(t)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	address := strings.TrimPrefix(w.url, "http://")
	before := heap()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		conns[i] = c
		defer c.Close()
		require.NoError(t, kinds[i%len(kinds)].send(c, "localhost"))
	}
	perConnection := (heap() - before) / n
	t.Logf("%d kinds of refusals, %d connections without bodies, %d kB each", len(kinds), n, perConnection>>10)
	assert.Less(t, perConnection, int64(256<<10), "both ends, including the client's")
	var wrong sync.Map
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			if err := refused(c, kinds[i%len(kinds)].status); err != nil {
				wrong.Store(kinds[i%len(kinds)].name, err)
			}
		})
	}
	wg.Wait()
	wrong.Range(func(kind, err any) bool {
		t.Errorf("%s: %v", kind, err)
		return true
	})
}

// refused reads the answer to a refused request, and waits for the end of the
// connection.
func refused(c net.Conn, status int) error {
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	read := bufio.NewReader(c)
	resp, err := http.ReadResponse(read, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != status || !resp.Close {
		body, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("status %d, closing %t, expected %d and true: %s", resp.StatusCode, resp.Close, status, body)
	}
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if _, err = read.ReadByte(); errors.Is(err, io.EOF) || strings.Contains(fmt.Sprint(err), "reset") {
		return nil
	}
	return fmt.Errorf("the connection is still open: %w", err)
}

// TestBodyThatNeverComesIsClosed: with the usual limits, the connection of a
// body that never comes is closed within 70 s.
func TestBodyThatNeverComesIsClosed(t *testing.T) {
	w := newWorld(t)
	assert.LessOrEqual(t, w.api.cfg.BodyGrace+w.api.waitBeforeBody()+drainTime+lingerSilence, 70*time.Second)
}
