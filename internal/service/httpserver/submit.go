package httpserver

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// Limits on the texts of a submission, in characters.
const (
	maxURL            = 8192
	maxFilename       = 255
	maxCallbackSecret = 1024
	maxBatchItems     = 100
)

// terms are the common fields of a task and a batch.
type terms struct {
	options                     spec.Options
	effective                   spec.EffectiveOptions // options with their defaults
	callbackURL, callbackSecret string
	batch, allowTraining        bool

	given map[string]bool // names that were in the body
}

// read reads a body with the common fields and others; max limits the value of
// one field, in bytes.
func (t *terms) read(body io.Reader, max int, others jsonstream.Fields) error {
	fields := jsonstream.Fields{
		"options":         func(v *jsonstream.Value) error { return readOptions(v, &t.options) },
		"callback_url":    text(&t.callbackURL, maxURL),
		"callback_secret": text(&t.callbackSecret, maxCallbackSecret),
		"batch_mode":      func(v *jsonstream.Value) error { return v.Bool(&t.batch) },
		"allow_training":  func(v *jsonstream.Value) error { return v.Bool(&t.allowTraining) },
	}
	maps.Copy(fields, others)
	t.given = map[string]bool{}
	for name, read := range fields {
		fields[name] = func(v *jsonstream.Value) error {
			if null, err := v.Null(); null { // some programs write missing values
				return err
			}
			t.given[name] = true
			return read(v)
		}
	}
	return jsonstream.ReadObject(body, max, fields)
}

// check validates the common fields and completes the options.
func (t *terms) check() (err error) {
	if t.given["callback_url"] && t.callbackURL == "" {
		return invalid("callback_url: must not be empty; omit it if you want no callback")
	}
	if t.effective, err = t.options.Effective(); err != nil {
		return optionsError(err)
	}
	return nil
}

// submission is the body of POST /tasks.
type submission struct {
	terms
	audioURL, filename string
}

// readSubmission reads the body of POST /tasks. The audio of audio_base64 is
// decoded and passed to audio as it arrives, at any position in the body; none
// of it is held in memory. If an error is returned, audio may have been called,
// and the caller discards the stored audio.
func readSubmission(body io.Reader, audio func(io.Reader) error) (*submission, error) {
	s := &submission{}
	err := s.read(body, maxCaptured, jsonstream.Fields{
		"audio_url":      text(&s.audioURL, maxURL),
		"audio_filename": text(&s.filename, maxFilename),
		"audio_base64": func(v *jsonstream.Value) error {
			if s.given["audio_url"] {
				return bothSources()
			}
			r, err := v.Base64()
			if err != nil {
				return err
			}
			return audio(r)
		},
	})
	if err != nil {
		return nil, err
	}
	return s, s.check()
}

func bothSources() *apiError { return invalid("audio_url and audio_base64: use only one of the two") }

// check validates the fields together.
func (s *submission) check() error {
	switch {
	case s.given["audio_url"] && s.given["audio_base64"]:
		return bothSources()
	case !s.given["audio_url"] && !s.given["audio_base64"]:
		return invalid("audio_url or audio_base64: one of them is required")
	case s.given["audio_url"] && s.audioURL == "":
		return invalid("audio_url: must not be empty")
	case s.given["audio_base64"] && s.filename == "":
		return invalid("audio_filename: is required with audio_base64, to determine the extension")
	case s.given["audio_filename"] && s.filename == "":
		return invalid("audio_filename: must not be empty")
	}
	return s.terms.check()
}

// batchSubmission is the body of POST /tasks/batch.
type batchSubmission struct {
	terms
	urls      []string
	filenames []string // nil, or one for each URL
}

// readBatch reads the body of POST /tasks/batch.
func readBatch(body io.Reader) (*batchSubmission, error) {
	b := &batchSubmission{}
	err := b.read(body, maxBatchBody, jsonstream.Fields{
		"audio_url":      func(v *jsonstream.Value) error { return v.Texts(&b.urls, maxBatchItems, maxURL) },
		"audio_filename": func(v *jsonstream.Value) error { return v.Texts(&b.filenames, maxBatchItems, maxFilename) },
	})
	switch {
	case err != nil:
		return nil, err
	case !b.batch:
		return nil, invalid("batch_mode: must be true for POST /tasks/batch")
	case !b.given["audio_url"]:
		return nil, invalid("audio_url: is required, an array of 1 to %d URLs", maxBatchItems)
	case len(b.urls) == 0:
		return nil, invalid("audio_url: must contain 1 to %d URLs", maxBatchItems)
	case b.filenames != nil && len(b.filenames) != len(b.urls):
		return nil, invalid("audio_filename: has %d entries but audio_url has %d; they must be equally long", len(b.filenames), len(b.urls))
	}
	return b, b.check()
}

// goodSecret is the recommended length of a callback's secret, in characters.
// The interface sets no minimum, so a shorter secret is accepted with a
// warning.
const goodSecret = 16

// warnShort warns the client, in a header, and the operator about a secret that
// can be guessed.
func (s *Server) warnShort(w http.ResponseWriter, r *request, secret string) {
	length := utf8.RuneCountInString(secret)
	if length == 0 || length >= goodSecret {
		return
	}
	w.Header().Set("Warning", `299 - "callback_secret has fewer than 16 characters and can be guessed"`)
	s.log.Warn("short callback secret", "request", r.id, "account", r.who.Account, "characters", length)
}

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
	_ = g.Wait() // lookups write their errors into the requests
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
			b.Task = new(created(*it.Task))
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
