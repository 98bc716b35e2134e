package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/mediafiles"
	"github.com/otograph/otograph/subtitle"
)

// getTranscript handles GET /tasks/:id/transcript, an addition to the
// specification: the result as a file, with the owner's names and corrections.
func (s *Server) getTranscript(w http.ResponseWriter, r *request) error {
	id, err := r.task()
	if err != nil {
		return err
	}
	format := subtitle.Format(r.URL.Query().Get("format"))
	if format.MediaType() == "" {
		return invalid("format: %q; expected one of %s", format, joined(subtitle.Formats()))
	}
	stored, err := s.cfg.Tasks.Result(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	defer stored.Close()
	notes, err := s.cfg.Tasks.Annotations(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	result, err := stored.Whole()
	if err != nil {
		return err
	}
	notes.Apply(result)
	var out bytes.Buffer
	name, date := stored.Task.AudioFilename, time.Now()
	if stored.Task.FinishedAt != nil {
		date = *stored.Task.FinishedAt
	}
	err = subtitle.Write(&out, format, name, date, result)
	switch {
	case errors.Is(err, subtitle.ErrNoWordTimes):
		return &apiError{Status: http.StatusConflict, Code: codeConflict, Message: "format: ctm requires word times, which not every segment of this result has", cause: err}
	case errors.Is(err, subtitle.ErrNoTurns):
		return &apiError{Status: http.StatusConflict, Code: codeConflict, Message: "format: rttm requires speaker turns, but diarization did not run (enable_diarize)", cause: err}
	case err != nil:
		return err
	}
	w.Header().Set("Content-Disposition", attachment(mediafiles.Stem(name)+format.Extension()))
	writeBody(w, http.StatusOK, format.MediaType(), out.Bytes())
	return nil
}

func joined(formats []subtitle.Format) string {
	var b strings.Builder
	for i, f := range formats {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(f))
	}
	return b.String()
}
