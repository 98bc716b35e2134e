package httpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
)

// The endpoints below audio/ and models implement OpenAI's audio interface,
// whose dialect is in package internal/openai. They are additions to the
// specification.

// names returns the names that clients may send as model.
func (s *Server) names(ctx context.Context) (openai.Names, error) {
	sets, err := s.cfg.Tasks.Available(ctx)
	return openai.Names{Aliases: s.cfg.ModelAliases, Strict: s.cfg.StrictModels, Sets: sets}, err
}

func (s *Server) listModels(w http.ResponseWriter, r *request) error {
	names, err := s.names(r.Context())
	return respond(w, names.List(s.started), err)
}

// getModel handles GET /models/{model}, and GET /models/, which some clients
// use for the list.
func (s *Server) getModel(w http.ResponseWriter, r *request) error {
	if r.PathValue("model") == "" {
		return s.listModels(w, r)
	}
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	m, err := names.Find(r.PathValue("model"), s.started)
	return respond(w, m, err)
}

// maxFormEnd limits the bytes after the last field of a form.
const maxFormEnd = 16 << 10

// openAIFolders are the first elements of the paths of OpenAI's interface,
// most of which are not served.
var openAIFolders = []string{"audio", "models", "realtime", "live", "chat", "completions", "responses", "embeddings", "files", "images", "batches", "moderations", "uploads"}

// openAIPath reports whether a path belongs to OpenAI's interface, whose errors
// have a different form.
func (s *Server) openAIPath(path string) bool {
	rest, ok := strings.CutPrefix(path, s.cfg.BasePath+"/")
	first, _, _ := strings.Cut(rest, "/")
	return ok && slices.Contains(openAIFolders, first)
}

// openAI returns the error in the form of OpenAI's interface.
func (e *apiError) openAI() openai.ErrorBody {
	return openai.NewErrorBody(e.Status, e.Code, e.openAICode, e.Param, e.Message)
}

// transcribe handles POST /audio/transcriptions, or /audio/translations, whose
// text is English, as OpenAI's clients call them: the upload becomes an ordinary
// task, and the response waits until it is done.
func (s *Server) transcribe(w http.ResponseWriter, r *request) error {
	translate := strings.HasSuffix(r.route, "/translations")
	files := &formFiles{server: s, r: r}
	defer files.drop()
	form, names, err := s.readForm(w, r, translate, files)
	if err != nil {
		return err
	}
	req := tasks.Request{
		Account: r.who.Account, Key: r.who.KeyID, Filename: form.Filename, Options: form.Effective, ID: files.task,
		Extras: tasks.Extras{Extras: spec.Extras{Translate: form.Translate, Measures: form.Measures(), Languages: form.Languages, Model: form.Model()}, Voices: form.Speakers},
	}
	count := r.Header.Get("X-Stainless-Retry-Count") // of OpenAI's clients
	req.Again = count != "" && count != "0"
	if err := s.commitAudio(r, "file", files.audio, &req); err != nil {
		return err
	}
	if err := files.check(); err != nil {
		s.cfg.Tasks.DropAudio(r.Context(), req.Audio.Key)
		return err
	}
	t, err := s.createInOrder(r.Context(), req)
	if errors.Is(err, tasks.ErrTranslation) {
		return openai.NoTranslation()
	}
	if errors.Is(err, tasks.ErrModel) { // removed since the form was read
		return names.Unknown(form.Model())
	}
	if unknown, ok := errors.AsType[*tasks.LanguageError](err); ok {
		return form.NoLanguage(unknown)
	}
	if err != nil {
		return err
	}
	files.owned = true
	w.Header().Set("X-Task-Id", t.ID)
	gone := false
	if form.CancelOnDisconnect {
		defer func() {
			if !gone || s.draining.Err() != nil { // a server that stops closes connections too
				return
			}
			if _, err := s.cfg.Tasks.Leave(context.WithoutCancel(r.Context()), r.who.Account, t.ID); err != nil && !errors.Is(err, tasks.ErrFinal) {
				s.log.Warn("task of a disconnected client continues", "request", r.id, "task", t.ID, "error", err)
			}
		}()
	}
	if form.Stream {
		gone, err = s.streamTranscription(w, r, t.ID, form)
		return err
	}
	result, err := s.finished(r.Context(), r, t.ID)
	gone = r.Context().Err() != nil
	if err != nil {
		w.Header().Set(shouldRetry, "false")
		return err
	}
	kind, answer, err := form.Answer(result)
	if err != nil {
		return err
	}
	if warning := tasks.WarningHeader(result.Warnings); warning != "" {
		w.Header().Set("Warning", warning)
	}
	writeBody(w, http.StatusOK, kind, answer)
	return nil
}

// readForm reads the request's form to its end, and stores its files.
func (s *Server) readForm(w http.ResponseWriter, r *request, translate bool, files *formFiles) (*openai.Form, openai.Names, error) {
	var names openai.Names
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, names, unsupported("Content-Type must be multipart/form-data with a boundary")
	}
	body, err := limitedBody(w, r, maxUploadBody)
	if err != nil {
		return nil, names, err
	}
	leave, err := s.admitInTurn(r)
	if err != nil {
		return nil, names, err
	}
	defer leave()
	if names, err = s.names(r.Context()); err != nil {
		return nil, names, err
	}
	form, err := openai.ReadForm(multipart.NewReader(body, params["boundary"]), names, translate, files.keepAudio, files.keepReference)
	if err != nil {
		if len(names.Sets) == 0 { // the workers may report the model shortly
			w.Header().Set(shouldRetry, "true")
		}
		return nil, names, err
	}
	// The disconnection of a client is only noticed once its whole body has
	// been read.
	_, err = io.Copy(io.Discard, io.LimitReader(jsonstream.Reader(body, openai.Unreadable), maxFormEnd))
	return form, names, err
}

// shouldRetry is the header that tells OpenAI's clients whether to send a
// request again, regardless of the status. Once the task exists they must not,
// because a retry would create and charge another task.
const shouldRetry = "X-Should-Retry"

// finished waits for the end of a task and returns its result, with the names
// of the form's known speakers.
func (s *Server) finished(ctx context.Context, r *request, id string) (spec.Result, error) {
	defer s.cfg.Metrics.Waiting()()
	var result spec.Result
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
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
		reason := *cmp.Or(t.ErrorMessage, new("unknown reason"))
		if t.Status == tasks.StatusAbandoned {
			return result, &apiError{Status: http.StatusInternalServerError, Code: codeInternal, Message: "the task was abandoned: " + reason}
		}
		return result, openai.Untranscribed(reason)
	}
	return s.resultOf(r, id)
}

// resultOf returns the result of a task that is done, with the owner's names and
// corrections.
func (s *Server) resultOf(r *request, id string) (result spec.Result, err error) {
	stored, err := s.cfg.Tasks.Result(r.Context(), r.who.Account, id)
	if err != nil {
		return result, err
	}
	defer stored.Close()
	whole, err := stored.Whole()
	if err != nil {
		return result, err
	}
	corrections.Rename(whole, whole.Names)
	whole.Tier = stored.Bill.Mode
	return *whole, nil
}

// streamTranscription responds with events: a delta for each sentence as soon
// as it is known, with diarization also the segment and its speaker, and the
// whole text at the end. The status is sent before the outcome of the task is
// known, so later failures are events too. gone reports whether the client has
// disconnected before the end.
func (s *Server) streamTranscription(w http.ResponseWriter, r *request, id string, form *openai.Form) (gone bool, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	states, err := s.cfg.Tasks.Follow(ctx, r.who.Account, id)
	if err != nil {
		return false, err
	}
	stream := newEventStream(w)
	type answer struct {
		result spec.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := s.finished(ctx, r, id)
		answers <- answer{result, err}
	}()
	speech, sent := form.Speech(), cursor{}
	send := func(events []any) error {
		for _, event := range events {
			if err := stream.send("", "", event); err != nil {
				return err
			}
		}
		return nil
	}
	if stream.beat() != nil { // the client receives the header at once
		return true, nil
	}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if stream.beat() != nil {
				return true, nil
			}
		case state := <-states:
			if live := state.Live; live == nil || sent.attempt != 0 && live.Attempt != sent.attempt {
				continue // End compares the sentences of another attempt with the result
			}
			_, news := sent.advance(state.Live)
			if send(speech.News(news)) != nil {
				return true, nil
			}
		case a := <-answers:
			if a.err != nil {
				failure := s.translate(a.err)
				s.log.Info("streamed transcription failed", "request", r.id, "task", id, "error_code", failure.Code)
				_ = stream.send("", "", failure.openAI())
				return r.Context().Err() != nil, nil
			}
			if err := send(speech.End(a.result)); err != nil {
				s.log.Debug("client left a stream", "request", r.id, "error", err)
			}
			return false, nil
		}
	}
}

// maxReference limits the recording of a known speaker, in bytes.
const maxReference = 8 << 20

// formFiles holds the files of a form, stored for a task to be created.
type formFiles struct {
	server *Server
	r      *request
	audio  *blob.Writer // nil before a recording comes
	task   string       // the task's id, "" before there is a recording of a speaker
	keys   []string     // of the recordings of known speakers
	owned  bool         // the task exists
}

func (k *formFiles) keepAudio(filename string, from io.Reader) (err error) {
	k.audio, err = k.server.storeAudio(k.r.Context(), filename, from)
	return err
}

// keepReference stores the recording of a known speaker.
func (k *formFiles) keepReference(from io.Reader) error {
	tools := k.server.cfg.Tasks
	k.task = cmp.Or(k.task, tasks.NewID())
	audio, err := tools.NewReference(k.r.Context(), k.task, len(k.keys))
	if err != nil {
		return err
	}
	n, err := copyAudio(audio, io.LimitReader(from, maxReference+1))
	if err == nil && n > maxReference {
		err = openai.BadReference(len(k.keys), fmt.Errorf("longer than %d bytes", maxReference))
	}
	var info blob.Info
	if err == nil {
		info, err = audio.Commit()
	}
	if err != nil {
		audio.Abort()
		return err
	}
	k.keys = append(k.keys, info.Key)
	return nil
}

// check checks the lengths of the speakers' recordings, if they can be probed.
func (k *formFiles) check() error {
	for i, key := range k.keys {
		seconds, err := k.server.cfg.Tasks.Measure(k.r.Context(), k.r.who.Account, "", key, "reference")
		if err != nil {
			return err
		}
		// The worker rejects recordings of unknown length.
		if seconds > 0 && (seconds < spec.ShortestVoice-spec.VoiceSlack || seconds > spec.LongestVoice+spec.VoiceSlack) {
			return openai.BadReference(i, fmt.Errorf("expected %d to %d s of audio, found %.1f s", spec.ShortestVoice, spec.LongestVoice, seconds))
		}
	}
	return nil
}

// drop deletes the files unless the task owns them.
func (k *formFiles) drop() {
	if k.audio != nil {
		k.audio.Abort() // does nothing after Commit
	}
	if len(k.keys) > 0 && !k.owned {
		k.server.cfg.Tasks.DropReferences(k.r.Context(), k.task, len(k.keys))
	}
}
