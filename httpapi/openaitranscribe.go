package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/spec"
)

// transcribe is POST /audio/transcriptions, as OpenAI's clients call it: the
// upload becomes an ordinary task, and the answer waits until it is done.
func (s *Server) transcribe(w http.ResponseWriter, r *request) error { return s.listen(w, r, false) }

// translation is POST /audio/translations: the same, with the text in English.
func (s *Server) translation(w http.ResponseWriter, r *request) error { return s.listen(w, r, true) }

func (s *Server) listen(w http.ResponseWriter, r *request, translate bool) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return unsupportedType("multipart/form-data with a boundary")
	}
	body, err := s.body(w, r.Request, maxUploadBody)
	if err != nil {
		return err
	}
	leave, err := s.admit(r, maxUploadBody)
	if err != nil {
		return err
	}
	defer leave()
	var audio *blob.Writer
	known := &references{server: s, r: r}
	created := false
	defer func() {
		if audio != nil {
			audio.Abort()
		}
		if !created {
			known.drop()
		}
	}()
	form, err := readForm(multipart.NewReader(body, params["boundary"]), translate, func(filename string, from io.Reader) error {
		if audio, err = s.cfg.Tasks.NewAudio(r.Context(), filename); err != nil {
			return err
		}
		n, err := copyAudio(audio, from)
		s.metrics.Upload(n)
		return err
	}, known.keep)
	if err != nil {
		return err
	}
	// A client that goes away while its task is worked on is noticed only when
	// nothing of its body is left.
	if _, err := io.Copy(io.Discard, io.LimitReader(body, maxFormField)); err != nil {
		return formError(err)
	}
	leave()
	options, err := effective(form.options)
	if err != nil {
		return err
	}
	req := tasks.Request{Account: r.who.Account, Filename: form.filename, Options: options, Extras: form.extras(), ID: known.task}
	if err := s.commitAudio(r, audio, &req); err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Message, e.Param = strings.Replace(e.Message, "audio_base64", "file", 1), "file"
		}
		return err
	}
	if err := known.check(); err != nil {
		s.cfg.Tasks.DropAudio(r.Context(), req.Audio.Key)
		return err
	}
	t, _, err := s.cfg.Tasks.Create(r.Context(), req, tasks.Idempotency{})
	if errors.Is(err, tasks.ErrTranslation) {
		return badField("model", "not all installed models can translate: multilingual Whisper models can, except turbo and distilled ones")
	}
	if err != nil {
		return err
	}
	created = true
	w.Header().Set("X-Task-Id", t.ID)
	if form.stream {
		return s.streamTranscription(w, r, t.ID, form)
	}
	result, err := s.finished(r.Context(), r, t.ID, form)
	if err != nil {
		w.Header().Set(shouldRetry, "false")
		return err
	}
	return writeTranscription(w, form, result)
}

// shouldRetry is the header that tells OpenAI's clients whether to send a request
// again. After the task was made they must not: they would make another one, which
// is charged as well.
const shouldRetry = "X-Should-Retry"

// untranscribed is the answer to a task that ended without a result.
func untranscribed(status tasks.Status, reason string) *Error {
	if status == tasks.StatusAbandoned {
		return &Error{Status: http.StatusInternalServerError, Code: codeInternal, Message: "the task was abandoned: " + reason}
	}
	e := badField("file", "the audio could not be transcribed: %s", reason)
	if strings.HasPrefix(reason, tasks.ReferencesField+":") {
		e.Message, e.Param = reason, tasks.ReferencesField
	}
	e.openAICode = "invalid_value"
	return e
}

// finished waits for the end of a task and returns its result, with the additions
// that the form asked for.
func (s *Server) finished(ctx context.Context, r *request, id string, form *transcription) (spec.Result, error) {
	defer s.metrics.Waiting()()
	var result spec.Result
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	t, err := s.cfg.Tasks.Wait(ctx, r.who.Account, id)
	if err != nil {
		if r.Context().Err() == nil && ctx.Err() != nil {
			out := unavailable(err)
			out.Message = "the service is stopping; the task continues: GET /tasks/" + id
			return result, out
		}
		return result, err
	}
	if t.Status != tasks.StatusDone {
		reason := "unknown reason"
		if t.ErrorMessage != nil {
			reason = *t.ErrorMessage
		}
		return result, untranscribed(t.Status, reason)
	}
	stored, err := s.cfg.Tasks.Result(r.Context(), r.who.Account, id)
	if err != nil {
		return result, err
	}
	defer stored.Close()
	var buf bytes.Buffer
	if _, err := stored.WriteTo(&buf); err != nil {
		return result, err
	}
	if err := json.Unmarshal(buf.Bytes(), &result); err != nil {
		return result, err
	}
	if extras := form.extras(); !extras.Measures && len(extras.Voices) == 0 {
		return result, nil
	}
	additions, err := s.cfg.Tasks.Additions(r.Context(), r.who.Account, id)
	result.Add(additions)
	for i := range result.Segments {
		seg := &result.Segments[i]
		if name, known := result.Names[seg.Speaker]; known {
			seg.Speaker = name
		}
	}
	return result, err
}
