package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Audio returns the recording of a task while the service keeps it. Afterwards,
// the error is an *Error with the status 404. The caller closes it.
func (c *Client) Audio(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, taskPath(id, "audio"), nil)
}

// Waveform returns the peaks of a recording: 50 bytes for each second.
func (c *Client) Waveform(ctx context.Context, id string) ([]byte, error) {
	return c.read(ctx, taskPath(id, "waveform"))
}

// Transcript returns the result of a task, with its corrections, in a format of
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

// Correction is a change of a transcript by hand. The stored result does not
// change; Result (but for names) and Transcript apply it. Op is "annotate" (with
// Speakers and Texts), "assign" (Segment and Speaker), "split" (Segment and At,
// in characters), "join" (Segment and the next one) or "undo".
type Correction struct {
	Version  int64              `json:"version"` // 1 for the first of a task
	Author   string             `json:"author,omitempty"`
	MadeAt   time.Time          `json:"made_at,omitzero"`
	Op       string             `json:"op"`
	Segment  *int               `json:"segment,omitempty"` // its id
	Speaker  string             `json:"speaker,omitempty"`
	At       int                `json:"at,omitempty"`
	Speakers map[string]*string `json:"speakers,omitempty"` // names by speaker ("SPEAKER_0"); nil removes one
	Texts    map[string]*string `json:"texts,omitempty"`    // by the segment's id; nil removes one
}

// Corrections returns the corrections of a task, including those that are
// undone, in order.
func (c *Client) Corrections(ctx context.Context, id string) ([]Correction, error) {
	var list struct {
		Corrections []Correction `json:"corrections"`
	}
	err := c.call(ctx, http.MethodGet, taskPath(id, "corrections"), nil, &list)
	return list.Corrections, err
}

// Correct adds a correction to a task and returns it. version is the version of
// the last correction that it is based on. If others have been made since, the
// error is an *Error with the status 409.
func (c *Client) Correct(ctx context.Context, id string, change Correction, version int64) (made Correction, err error) {
	change.Version, change.Author, change.MadeAt = version, "", time.Time{}
	err = c.call(ctx, http.MethodPost, taskPath(id, "corrections"), change, &made)
	return made, err
}

func taskPath(id, part string) string { return "/tasks/" + url.PathEscape(id) + "/" + part }
