package httpserver

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/subtitle"
)

// getTranscript handles GET /tasks/:id/transcript, an addition to the
// specification: the result as a file, with the owner's names and corrections.
func (s *Server) getTranscript(w http.ResponseWriter, r *request, id string) error {
	format := subtitle.Format(r.query.Get("format"))
	if format.MediaType() == "" {
		return invalid("format: %q; expected one of %s", format, subtitle.Formats())
	}
	stored, names, err := s.corrected(r, id)
	if err != nil {
		return err
	}
	defer stored.Close()
	result, err := stored.Whole()
	if err != nil {
		return err
	}
	corrections.Rename(result, names)
	var out bytes.Buffer
	name, date := stored.Task.AudioFilename, *cmp.Or(stored.Task.FinishedAt, new(time.Now()))
	if err := subtitle.Write(&out, format, name, date, result); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", attachment(mediafiles.Stem(name)+format.Extension()))
	writeBody(w, http.StatusOK, format.MediaType(), out.Bytes())
	return nil
}

// getAudio handles GET /tasks/:id/audio, an addition to the specification. It
// supports byte ranges.
func (s *Server) getAudio(w http.ResponseWriter, r *request, id string) error {
	audio, err := s.cfg.Tasks.Audio(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	defer audio.Close()
	if _, err := audio.Read(nil); err != nil && audio.Size > 0 { // the audio may have been deleted meanwhile
		return err
	}
	h := w.Header()
	h.Set("Content-Type", audioType(audio.Task.AudioFilename))
	h.Set("Content-Disposition", attachment(audio.Task.AudioFilename))
	h.Set("Cache-Control", "private, no-cache")
	if audio.Task.AudioMD5 != nil {
		h.Set("ETag", `"`+*audio.Task.AudioMD5+`"`)
	}
	content := &contentWriter{ResponseWriter: w}
	http.ServeContent(content, r.Request, "", time.Time{}, audio)
	if content.refused() {
		return &apiError{Status: content.status, Code: codeInvalidRequest, Message: fmt.Sprintf("the recording has %d bytes, or another ETag: Range and If-Match must fit it", audio.Size)}
	}
	return nil
}

// contentWriter leaves out a refusal of a library, whose text would not be JSON.
type contentWriter struct {
	http.ResponseWriter
	status int
}

func (w *contentWriter) refused() bool { return w.status >= http.StatusBadRequest }

// Unwrap lets a library take the connection.
func (w *contentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *contentWriter) WriteHeader(status int) {
	if w.status = status; !w.refused() {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *contentWriter) Write(p []byte) (int, error) {
	if w.refused() {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// audioType returns the media type of a file name if it is audio or video: a
// browser must not interpret an uploaded file as anything else.
func audioType(name string) string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(path.Ext(name))), ";")
	if strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/") {
		return kind
	}
	return "application/octet-stream"
}

// attachment returns the Content-Disposition of a download; some clients take
// its name for a path.
func attachment(name string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": safeName(name)})
}
