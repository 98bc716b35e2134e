package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Audio returns the recording of a task while the service keeps it. Afterwards,
// the error is an *Error with the status 404. The caller closes it.
func (c *Client) Audio(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, taskPath(id, "audio"), nil)
}

// Waveform returns the peaks of equal stretches of a task's recording; 255 is
// the loudest.
func (c *Client) Waveform(ctx context.Context, id string) ([]byte, error) {
	return c.read(ctx, taskPath(id, "waveform"))
}

// Transcript returns the result of a task, with its annotations, in a format of
// package subtitle (such as "srt").
func (c *Client) Transcript(ctx context.Context, id, format string) ([]byte, error) {
	return c.read(ctx, taskPath(id, "transcript")+"?format="+url.QueryEscape(format))
}

func (c *Client) read(ctx context.Context, path string) ([]byte, error) {
	body, err := c.open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("client: answer to GET %s: %w", path, err)
	}
	return data, nil
}

// open sends a GET request and returns the response's body, which the caller
// closes. The body is nil for a response without content (204).
func (c *Client) open(ctx context.Context, path string, header http.Header) (io.ReadCloser, error) {
	var body io.ReadCloser
	err := c.retry(ctx, func() error {
		resp, err := c.answer(ctx, http.MethodGet, path, header, nil) //nolint:bodyclose // the caller's
		if err != nil {
			return err
		}
		if resp.StatusCode == http.StatusNoContent {
			return resp.Body.Close()
		}
		body = resp.Body
		return nil
	})
	return body, err
}

// Annotations are people's speaker names and corrections for a task. The stored
// result does not change; Transcript applies them.
type Annotations struct {
	// Version counts the changes, 0 before the first.
	Version int64 `json:"version"`
	// Speakers maps speakers ("SPEAKER_0") to names; Texts maps segment ids to
	// texts.
	Speakers  map[string]string `json:"speakers"`
	Texts     map[string]string `json:"texts"`
	UpdatedAt *time.Time        `json:"updated_at"` // nil before the first change
}

// AnnotationPatch is a change to Annotations; nil removes an entry.
type AnnotationPatch struct {
	Speakers map[string]*string `json:"speakers,omitempty"`
	Texts    map[string]*string `json:"texts,omitempty"`
}

// Annotations returns the annotations of a task.
func (c *Client) Annotations(ctx context.Context, id string) (Annotations, error) {
	var a Annotations
	return a, c.call(ctx, http.MethodGet, taskPath(id, "annotations"), nil, &a)
}

// Annotate changes the annotations of a task and returns them. version is the
// version that the change is based on. If the annotations have changed since,
// the error is an *Error with the status 412. If version is nil, the change
// applies to any version.
func (c *Client) Annotate(ctx context.Context, id string, patch AnnotationPatch, version *int64) (Annotations, error) {
	header := http.Header{}
	if version != nil {
		header.Set("If-Match", strconv.Quote(strconv.FormatInt(*version, 10)))
	}
	var a Annotations
	return a, c.callWith(ctx, http.MethodPatch, taskPath(id, "annotations"), header, patch, &a)
}

func taskPath(id, part string) string { return "/tasks/" + url.PathEscape(id) + "/" + part }
