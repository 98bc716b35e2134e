package httpserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// createdTask is the Task record of a creation response.
type createdTask struct {
	ID         string                `json:"id"`
	Status     tasks.Status          `json:"status"`
	Filename   string                `json:"audio_filename"`
	SourceType string                `json:"audio_source_type"`
	Size       *int64                `json:"audio_size"`
	Options    spec.EffectiveOptions `json:"options"`
	CreatedAt  string                `json:"created_at"`
	UpdatedAt  string                `json:"updated_at"`
}

func created(t tasks.Task) createdTask {
	return createdTask{t.ID, t.Status, t.AudioFilename, t.AudioSourceType, t.AudioSize, t.Options, stamp(t.CreatedAt), stamp(t.UpdatedAt)}
}

// fullTask is the Task record of GET /tasks/:id.
type fullTask struct {
	createdTask
	MD5           *string        `json:"audio_md5"`
	AllowTraining bool           `json:"allow_training"`
	ErrorMessage  *string        `json:"error_message"`
	FinishedAt    *string        `json:"finished_at"`
	Warnings      []spec.Warning `json:"warnings,omitempty"` // an addition to the specification
}

// listedTask is an entry of GET /tasks.
type listedTask struct {
	ID         string       `json:"id"`
	Status     tasks.Status `json:"status"`
	Filename   string       `json:"audio_filename"`
	SourceType string       `json:"audio_source_type"`
	CreatedAt  string       `json:"created_at"`
	UpdatedAt  string       `json:"updated_at"`
	FinishedAt *string      `json:"finished_at"`
	taskDetails
}

// taskDetails are the details of a done task, sent if a client asks for them;
// an addition to the specification.
type taskDetails struct {
	Duration *float64       `json:"audio_duration,omitempty"`
	Language string         `json:"language,omitempty"`
	Speakers *int           `json:"num_speakers,omitempty"`
	Amount   *billing.Money `json:"amount,omitempty"`
}

func detailsOf(t tasks.Task) taskDetails {
	return taskDetails{t.AudioDuration, t.Language, t.Speakers, t.Charged}
}

// canonicalID reads an id of a request in its canonical form.
func canonicalID(text string) (string, bool) {
	if len(text) != 36 {
		return "", false
	}
	id, err := uuid.Parse(text)
	return id.String(), err == nil
}

// forTask is like private, for endpoints of one task.
func (s *Server) forTask(h func(w http.ResponseWriter, r *request, id string) error) handler {
	return s.private(func(w http.ResponseWriter, r *request) error {
		id, ok := canonicalID(r.PathValue("id"))
		if !ok {
			return notFound("there is no such task")
		}
		return h(w, r, id)
	})
}

// submitted passes the JSON body (at most max bytes) of a POST that creates
// tasks to read, and returns the request's idempotency key.
func submitted(w http.ResponseWriter, r *request, path string, max int64, read func(io.Reader) error) (tasks.Idempotency, error) {
	body, err := jsonBody(w, r, max)
	if err != nil {
		return tasks.Idempotency{}, err
	}
	sum := sha256.New()
	sum.Write([]byte("POST " + path + "\n"))
	if err := read(io.TeeReader(body, sum)); err != nil {
		return tasks.Idempotency{}, err
	}
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return tasks.Idempotency{}, nil
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
		return tasks.Idempotency{}, invalid("Idempotency-Key: must be given once, with 1 to 255 printable ASCII characters")
	}
	return tasks.Idempotency{Key: key, BodyHash: hex.EncodeToString(sum.Sum(nil))}, nil
}

// asked returns the task request for the given terms. It checks the callback
// URL, if any.
func (s *Server) asked(r *request, t *terms) (tasks.Request, error) {
	if t.callbackURL != "" {
		if err := s.checkURL(r, "callback_url", t.callbackURL); err != nil {
			return tasks.Request{}, err
		}
	}
	return tasks.Request{
		Account: r.who.Account, Key: r.who.KeyID, Options: t.effective, Batch: t.batch,
		CallbackURL: t.callbackURL, CallbackSecret: t.callbackSecret, AllowTraining: t.allowTraining,
	}, nil
}

func (s *Server) createTask(w http.ResponseWriter, r *request) error {
	var audio *blob.Writer
	var sub *submission
	defer func() {
		if audio != nil {
			audio.Abort()
		}
	}()
	leave, err := s.admit(r, maxSubmitBody)
	if err != nil {
		return err
	}
	defer leave()
	key, err := submitted(w, r, "/tasks", maxSubmitBody, func(body io.Reader) (err error) {
		sub, err = readSubmission(body, func(from io.Reader) error {
			audio, err = s.storeAudio(r.Context(), "", from)
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	req, err := s.asked(r, &sub.terms)
	if err != nil {
		return err
	}
	req.Filename = sub.filename
	if audio == nil {
		if err := s.checkURL(r, "audio_url", sub.audioURL); err != nil {
			return err
		}
		req.URL = sub.audioURL
		req.Filename = cmp.Or(req.Filename, lastSegment(sub.audioURL))
	} else if err := s.commitAudio(r, "audio_base64", audio, &req); err != nil {
		return err
	}
	t, replayed, err := s.cfg.Tasks.Create(r.Context(), req, key)
	if err != nil {
		return err
	}
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	s.warnShort(w, r, sub.callbackSecret)
	w.Header().Set("Location", s.cfg.BasePath+"/tasks/"+t.ID)
	return writeJSON(w, http.StatusCreated, created(t))
}

// storeAudio stores a request's audio; the caller commits or aborts it. Its
// error is the reader's *apiError or the store's.
func (s *Server) storeAudio(ctx context.Context, filename string, from io.Reader) (*blob.Writer, error) {
	audio, err := s.cfg.Tasks.NewAudio(ctx, filename)
	if err != nil {
		return nil, err
	}
	n, err := copyAudio(audio, from)
	s.cfg.Metrics.Upload(n)
	return audio, err
}

func copyAudio(w io.Writer, from io.Reader) (int64, error) {
	// The wrapper hides ReadFrom, which would allocate another buffer.
	return io.CopyBuffer(struct{ io.Writer }{w}, from, make([]byte, 96<<10))
}

// commitAudio completes an upload, which came in the named field, and measures
// its length.
func (s *Server) commitAudio(r *request, field string, audio *blob.Writer, req *tasks.Request) error {
	info, err := audio.Commit()
	if err != nil {
		return err
	}
	req.Audio = &info
	if info.Size < spec.MinAudioBytes {
		small := invalid("%s: must decode to at least %d bytes of audio, found %d", field, spec.MinAudioBytes, info.Size)
		small.Param, err = field, small
	} else {
		req.Seconds, err = s.cfg.Tasks.Measure(r.Context(), req.Account, r.Header.Get("Idempotency-Key"), info.Key, req.Filename)
	}
	if err != nil {
		s.cfg.Tasks.DropAudio(r.Context(), info.Key)
	}
	return err
}

// checkURL rejects a URL that this service may not access. If the resolver does
// not respond, the URL is accepted: the worker will resolve the name again.
func (s *Server) checkURL(r *request, field, u string) error {
	err := s.cfg.CheckURL(r.Context(), u)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, safehttp.ErrRefused):
		return invalidBecause(err, "%s: %s", field, err)
	case r.Context().Err() != nil:
		return r.Context().Err()
	}
	s.log.Debug("URL not checked", "request", r.id, "field", field, "cause", safehttp.Class(err))
	return nil
}

// lastSegment returns the file name of a URL: its last path segment, unescaped.
func lastSegment(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "audio"
	}
	name := path.Base(u.Path)
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name, "\uFFFD"))
	runes := []rune(name)
	name = string(runes[max(0, len(runes)-maxFilename):]) // the extension is at the end
	if name == "" || name == "." || name == "/" {
		return "audio"
	}
	return name
}

// listTasks is GET /tasks.
func (s *Server) listTasks(w http.ResponseWriter, r *request) error {
	q := queryOf(r)
	page, details := q.page(), q.bool("details")
	status, given := q.text("status")
	f := tasks.Filter{Page: page, Status: tasks.Status(status)}
	if given && !slices.Contains([]tasks.Status{tasks.StatusProcessing, tasks.StatusDone, tasks.StatusFailed, tasks.StatusAbandoned}, f.Status) {
		q.refuse("status: must be processing, done, failed or abandoned, not %q", spec.Shorten(status))
	}
	list, total, cursor, err := s.listed(r, q, f)
	if err != nil {
		return err
	}
	out := struct {
		Tasks    []listedTask `json:"tasks"`
		Total    int          `json:"total"`
		Page     int          `json:"page"`
		PageSize int          `json:"page_size"`
		Cursor   string       `json:"cursor,omitempty"` // an addition to the specification
	}{make([]listedTask, len(list)), total, page.Number, page.Size, cursor}
	for i, t := range list {
		out.Tasks[i] = listedTask{
			ID: t.ID, Status: t.Status, Filename: t.AudioFilename, SourceType: t.AudioSourceType,
			CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt), FinishedAt: stampOrNull(t.FinishedAt),
		}
		if details && t.Status == tasks.StatusDone {
			out.Tasks[i].taskDetails = detailsOf(t)
		}
	}
	return writeJSON(w, http.StatusOK, out)
}

// listed returns the page of tasks that a request asks for, and with
// finished_since, an addition to the specification, the next cursor.
func (s *Server) listed(r *request, q *query, f tasks.Filter) (list []tasks.Task, total int, cursor string, err error) {
	since, given := q.text("finished_since")
	after, err := strconv.ParseInt(since, 10, 64)
	switch {
	case !given:
	case err != nil || after < 0 || since[0] == '+':
		q.refuse("finished_since: must be the cursor of the page before, or 0, not %q", spec.Shorten(since))
	case f.Page != (billing.Page{Number: 1, Size: f.Size}):
		q.refuse("finished_since: cannot be combined with page, from, until or after")
	}
	if q.err != nil {
		return nil, 0, "", q.err
	}
	if !given {
		list, total, err = s.cfg.Tasks.List(r.Context(), r.who.Account, f)
		return list, total, "", err
	}
	list, next, total, err := s.cfg.Tasks.Finished(r.Context(), r.who.Account, f.Status, after, f.Size)
	if errors.Is(err, tasks.ErrCursor) {
		err = invalidBecause(err, "finished_since: %s", err)
	}
	return list, total, strconv.FormatInt(next, 10), err
}

// task returns the handler of an endpoint of one task, which responds with the
// task that do returns.
func task(do func(ctx context.Context, account, id string) (tasks.Task, error)) func(http.ResponseWriter, *request, string) error {
	return func(w http.ResponseWriter, r *request, id string) error {
		t, err := do(r.Context(), r.who.Account, id)
		return respond(w, shownTask(t), err)
	}
}

func shownTask(t tasks.Task) fullTask {
	return fullTask{created(t), t.AudioMD5, t.AllowTraining, t.ErrorMessage, stampOrNull(t.FinishedAt), t.Warnings}
}
