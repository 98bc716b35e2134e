package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

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
