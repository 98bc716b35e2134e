package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Annotations are names and corrections that people keep with a task. The result
// stays as it is; Transcript has them in it.
type Annotations struct {
	// Version counts the changes, 0 before the first.
	Version int64 `json:"version"`
	// Speakers has names by speaker ("SPEAKER_0"), Texts texts by a segment's id.
	Speakers  map[string]string `json:"speakers"`
	Texts     map[string]string `json:"texts"`
	UpdatedAt *time.Time        `json:"updated_at"` // nil before the first change
}

// AnnotationPatch is a change of Annotations; nil takes an entry out.
type AnnotationPatch struct {
	Speakers map[string]*string `json:"speakers,omitempty"`
	Texts    map[string]*string `json:"texts,omitempty"`
}

// Annotations returns the annotations of a task.
func (c *Client) Annotations(ctx context.Context, id string) (Annotations, error) {
	var a Annotations
	return a, c.call(ctx, http.MethodGet, taskPath(id, "annotations"), nil, &a)
}

// Annotate changes the annotations of a task and returns them. version is that of
// the annotations which the change was made for: when others were kept since, it
// is an *Error with the status 412. nil changes any version.
func (c *Client) Annotate(ctx context.Context, id string, patch AnnotationPatch, version *int64) (Annotations, error) {
	header := http.Header{}
	if version != nil {
		header.Set("If-Match", strconv.Quote(strconv.FormatInt(*version, 10)))
	}
	var a Annotations
	return a, c.callWith(ctx, http.MethodPatch, taskPath(id, "annotations"), header, patch, &a)
}

func taskPath(id, part string) string { return "/tasks/" + url.PathEscape(id) + "/" + part }
