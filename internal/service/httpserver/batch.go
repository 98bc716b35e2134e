package httpserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/safehttp"
)

// batchItem is one entry of results in the response to POST /tasks/batch.
type batchItem struct {
	Index   int          `json:"index"`
	URL     string       `json:"audio_url"`
	Success bool         `json:"success"`
	Task    *createdTask `json:"task,omitempty"`
	Error   string       `json:"error,omitempty"`
}

// batchLookups limits the names of one batch that are resolved concurrently.
const batchLookups = 16

// createBatch is POST /tasks/batch.
func (s *Server) createBatch(w http.ResponseWriter, r *request) error {
	var sub *batchSubmission
	key, err := submitted(w, r, "/tasks/batch", maxBatchBody, func(body io.Reader) (err error) {
		sub, err = readBatch(body)
		return err
	})
	if err != nil {
		return err
	}
	each, err := s.asked(r, &sub.terms)
	if err != nil {
		return err
	}
	requests := make([]tasks.Request, len(sub.urls))
	g, ctx := errgroup.WithContext(r.Context())
	g.SetLimit(batchLookups)
	for i, u := range sub.urls {
		requests[i] = each
		requests[i].URL, requests[i].Filename = u, lastSegment(u)
		if sub.filenames != nil {
			requests[i].Filename = sub.filenames[i]
			if sub.filenames[i] == "" {
				requests[i].Refused = errors.New("audio_filename: must not be empty")
				continue
			}
		}
		g.Go(func() error {
			requests[i].Refused = s.refused(ctx, u)
			return nil
		})
	}
	_ = g.Wait() // lookups report into their requests
	if err := r.Context().Err(); err != nil {
		return err
	}
	items, replayed, err := s.cfg.Tasks.CreateBatch(r.Context(), requests, key)
	if err != nil {
		return err
	}
	out := struct {
		Results []batchItem `json:"results"`
		Created int         `json:"created_count"`
		Failed  int         `json:"failed_count"`
	}{Results: make([]batchItem, len(items))}
	for i, it := range items {
		b := batchItem{Index: i, URL: sub.urls[i], Success: it.Task != nil, Error: it.Error}
		if it.Task != nil {
			c := created(*it.Task)
			b.Task = &c
			out.Created++
		} else {
			out.Failed++
		}
		out.Results[i] = b
	}
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	s.warnShort(w, r, sub.callbackSecret)
	return writeJSON(w, http.StatusCreated, out)
}

// refused returns the reason why a URL of a batch is rejected, or nil.
func (s *Server) refused(ctx context.Context, u string) error {
	if strings.TrimSpace(u) == "" {
		return errors.New("audio_url: must not be empty")
	}
	if err := s.cfg.CheckURL(ctx, u); errors.Is(err, safehttp.ErrRefused) {
		return errors.New("audio_url: " + err.Error())
	}
	return nil
}
