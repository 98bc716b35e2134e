package httpserver

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/subtitle"
)

// getTranscript handles GET /tasks/:id/transcript, an addition to the
// specification: the result as a file, with the owner's names and corrections.
func (s *Server) getTranscript(w http.ResponseWriter, r *request, id string) error {
	format := subtitle.Format(r.URL.Query().Get("format"))
	if format.MediaType() == "" {
		var formats []string
		for _, f := range subtitle.Formats() {
			formats = append(formats, string(f))
		}
		return invalid("format: %q; expected one of %s", format, strings.Join(formats, ", "))
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
