// Package client calls the transcription service over HTTP: it submits
// recordings, waits for tasks or streams their progress, reads and corrects
// results, and verifies callbacks. It needs nothing beyond the standard library
// and this module.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
)

// Client calls one service with one API key. It is safe for concurrent use; its
// fields may be set before the first call.
type Client struct {
	// HTTP sends the requests; nil means http.DefaultClient.
	HTTP *http.Client
	// Retries is the most retries of a request that the service asks to repeat
	// (429 rate_limited, 503); New sets 5.
	Retries int

	base, key string
}

// New returns a client of the service. base is its address with the version
// prefix ("https://asr.example.com/v1"), key an API key ("asr_…").
func New(base, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("client: base address: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("client: base address %q; expected http:// or https:// and a host", base)
	}
	return &Client{Retries: 5, base: strings.TrimSuffix(base, "/"), key: key}, nil
}

// Error is a response with a status of 400 or above.
type Error struct {
	Status int    // HTTP status
	Code   string // error_code of the answer, "insufficient_balance" for instance
	// Message is the service's description of the error.
	Message string
	// RetryAfter is the service's requested delay, 0 if there is none.
	RetryAfter time.Duration
}

// Error returns the message with its status and code.
func (e *Error) Error() string {
	return fmt.Sprintf("service answered %d (%s): %s", e.Status, e.Code, e.Message)
}

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	return e.Code == "rate_limited" || e.Status == http.StatusServiceUnavailable
}

// longestPause bounds the delay before a retry.
const longestPause = 30 * time.Second

// maxErrorBody bounds the part of an error response that is read, in bytes.
const maxErrorBody = 64 << 10

// call sends JSON and decodes the response; in and out may be nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	return c.callWith(ctx, method, path, nil, in, out)
}

func (c *Client) callWith(ctx context.Context, method, path string, header http.Header, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	return c.send(ctx, method, path, header, func() io.Reader { return bytes.NewReader(body) }, out)
}

// send sends a request and decodes the response into out, if that is not nil.
// It calls body for the content at each attempt.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body func() io.Reader, out any) error {
	return c.retry(ctx, func() error {
		resp, err := c.answer(ctx, method, path, header, body())
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if out == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		} else {
			err = json.NewDecoder(resp.Body).Decode(out)
		}
		if err != nil {
			return fmt.Errorf("client: answer to %s %s: %w", method, path, err)
		}
		return nil
	})
}

// retry repeats requests that the service asks to send later.
func (c *Client) retry(ctx context.Context, ask func() error) error {
	for try := 0; ; try++ {
		err := ask()
		failed, ok := errors.AsType[*Error](err)
		if !ok || !failed.Temporary() || try >= c.Retries {
			return err
		}
		if !backoff.Sleep(ctx, min(max(failed.RetryAfter, time.Duration(1<<try)*100*time.Millisecond), longestPause)) {
			return err
		}
	}
}

// answer sends a request once. A body below 400 is the caller's to close.
func (c *Client) answer(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	maps.Copy(req.Header, header)
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, failure(resp)
	}
	return resp, nil
}

// failure converts an error response. If it is not the service's (a proxy's
// page), the error contains its text.
func failure(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := &Error{Status: resp.StatusCode}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var body struct {
		Error string `json:"error"`
		Code  string `json:"error_code"`
	}
	if json.Unmarshal(text, &body) == nil && body.Error != "" {
		e.Message, e.Code = body.Error, body.Code
		return e
	}
	e.Message = strings.ToValidUTF8(strings.TrimSpace(string(text)), "\uFFFD")
	return e
}
