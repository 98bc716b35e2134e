package systems

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/internal/system/backoff"
)

const (
	// attempts is how often a request to a busy or failing server is sent.
	attempts = 4
	// longestPause limits the pause that a server may request.
	longestPause = time.Minute
)

// server is a server with OpenAI's transcription endpoint.
type server struct {
	address string
	form    map[string]string
	key     string
	limit   time.Duration // of one answer
	gap     time.Duration // between two requests

	plain atomic.Bool // the server refused response_format=verbose_json

	mu   sync.Mutex
	next time.Time // of the next request
}

// Server returns an Engine for the server at an address: the address of its
// interface ("http://host:8000/v1") or of an endpoint
// ("http://host:8080/inference"). The address's query parameters are sent as
// form fields ("?model=large-v3"). key is sent as a bearer token unless it is
// empty. Each response may take at most limit; perMinute, if positive, limits
// the number of requests per minute.
func Server(address, key string, limit time.Duration, perMinute int) (Engine, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("expected an address such as http://localhost:8000/v1, got %q", address)
	}
	s := &server{key: key, limit: limit, form: map[string]string{"model": "whisper-1"}}
	for name, values := range u.Query() {
		s.form[name] = values[0]
	}
	u.RawQuery = ""
	switch path := strings.TrimSuffix(u.Path, "/"); {
	case path == "":
		u.Path = "/v1/audio/transcriptions"
	case strings.HasSuffix(path, "/v1"):
		u.Path = path + "/audio/transcriptions"
	}
	s.address = u.String()
	if perMinute > 0 {
		s.gap = time.Minute / time.Duration(perMinute)
	}
	return s, nil
}

// Identity returns the address with the fields of the form, without the key.
func (s *server) Identity() string {
	fields, _ := json.Marshal(s.form)
	return s.address + " " + string(fields)
}

// Transcribe sends a recording and parses the response.
func (s *server) Transcribe(ctx context.Context, item datasets.Item) (*otograph.Result, Cost, error) {
	for attempt := 1; ; attempt++ {
		if err := s.wait(ctx); err != nil {
			return nil, Cost{}, err
		}
		start := time.Now()
		data, pause, err := s.ask(ctx, item)
		if err == nil {
			cost := Cost{Wall: time.Since(start).Seconds()}
			res, err := parse(data, item.Name)
			return res, cost, err
		}
		if pause < 0 || attempt == attempts || ctx.Err() != nil || !backoff.Sleep(ctx, pause) {
			return nil, Cost{}, err
		}
	}
}

// wait keeps the minimum interval between two requests.
func (s *server) wait(ctx context.Context) error {
	s.mu.Lock()
	now := time.Now()
	at := now
	if s.next.After(now) {
		at = s.next
	}
	s.next = at.Add(s.gap)
	s.mu.Unlock()
	if !backoff.Sleep(ctx, at.Sub(now)) {
		return ctx.Err()
	}
	return nil
}

// ask sends a request. With a pause of 0 or more, another may succeed.
func (s *server) ask(ctx context.Context, item datasets.Item) (data []byte, pause time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("no answer within %s", s.limit))
	defer cancel()
	plain := s.plain.Load()
	body, kind, err := s.body(item, plain)
	if err != nil {
		return nil, -1, err
	}
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, body)
	if err != nil {
		return nil, -1, err
	}
	req.Header.Set("Content-Type", kind)
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, -1, cause
		}
		return nil, time.Second, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return nil, -1, errors.Join(err, context.Cause(ctx))
	case len(data) > maxOutput:
		return nil, -1, fmt.Errorf("the answer is longer than %d MiB", maxOutput>>20)
	case resp.StatusCode == http.StatusBadRequest && !plain && bytes.Contains(data, []byte("response_format")):
		s.plain.Store(true)
		return nil, 0, refusal(resp, data)
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return nil, pauseOf(resp), refusal(resp, data)
	case resp.StatusCode != http.StatusOK:
		return nil, -1, refusal(resp, data)
	}
	return data, 0, nil
}

// pauseOf returns the pause that a server requests; by default a second.
func pauseOf(resp *http.Response) time.Duration {
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n >= 0 {
		return min(time.Duration(n)*time.Second, longestPause)
	}
	return time.Second
}

// refusal returns an error with a server's status and message.
func refusal(resp *http.Response, data []byte) error {
	var answer struct {
		Error, Detail json.RawMessage
	}
	text := strings.TrimSpace(string(data))
	if json.Unmarshal(data, &answer) == nil && len(answer.Error)+len(answer.Detail) > 0 {
		text = string(answer.Error) + string(answer.Detail)
	}
	return fmt.Errorf("status %s: %.200q", resp.Status, text)
}

// body returns a reader of the form, which streams the recording.
func (s *server) body(item datasets.Item, plain bool) (body io.ReadCloser, kind string, err error) {
	file, err := os.Open(item.Path)
	if err != nil {
		return nil, "", err
	}
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		defer file.Close()
		_ = w.CloseWithError(s.write(form, file, plain)) // the reader gets the error
	}()
	return r, form.FormDataContentType(), nil
}

func (s *server) write(form *multipart.Writer, file *os.File, plain bool) error {
	fields := map[string]string{"response_format": "verbose_json"}
	if plain {
		fields["response_format"] = "json"
	}
	maps.Copy(fields, s.form)
	for name, value := range fields {
		if err := form.WriteField(name, value); err != nil {
			return err
		}
	}
	if fields["response_format"] == "verbose_json" {
		for _, level := range []string{"word", "segment"} {
			if err := form.WriteField("timestamp_granularities[]", level); err != nil {
				return err
			}
		}
	}
	part, err := form.CreateFormFile("file", filepath.Base(file.Name()))
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, file); err != nil {
		return err
	}
	return form.Close()
}
