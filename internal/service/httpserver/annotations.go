package httpserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
)

// getAnnotations handles GET /tasks/:id/annotations, an addition to the
// specification.
func (s *Server) getAnnotations(w http.ResponseWriter, r *request, id string) error {
	log, err := s.cfg.Tasks.Corrections(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	out := struct {
		Version   int64             `json:"version"`
		Speakers  map[string]string `json:"speakers"`
		Texts     map[string]string `json:"texts"`
		UpdatedAt *string           `json:"updated_at"`
	}{Version: corrections.Version(log)}
	out.Speakers, out.Texts = corrections.Names(log)
	if len(log) > 0 {
		out.UpdatedAt = stampOrNull(&log[len(log)-1].MadeAt)
	}
	setVersion(w, out.Version)
	return writeJSON(w, http.StatusOK, out)
}

// patchAnnotations handles PATCH /tasks/:id/annotations, an addition to the
// specification.
func (s *Server) patchAnnotations(w http.ResponseWriter, r *request, id string) error {
	match, err := matched(r.Header.Values("If-Match"))
	if err != nil {
		return err
	}
	change := corrections.Change{Op: corrections.Annotate}
	err = readBody(w, r, tasks.MaxCorrection, jsonstream.Fields{"speakers": entries(&change.Speakers), "texts": entries(&change.Texts)})
	if err != nil {
		return err
	}
	if _, err := s.correct(r, id, change, match); err != nil {
		return err
	}
	return s.getAnnotations(w, r, id)
}

// entries reads an object of strings and nulls.
func entries(into *map[string]*string) func(*jsonstream.Value) error {
	return func(v *jsonstream.Value) error {
		raw, err := v.Raw()
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, into) != nil {
			return invalid("speakers, texts: each must be an object of strings; null removes an entry")
		}
		return nil
	}
}

// matched returns the version that If-Match names, nil for any.
func matched(values []string) (*int64, error) {
	if len(values) == 0 || (len(values) == 1 && strings.TrimSpace(values[0]) == "*") {
		return nil, nil
	}
	text, quoted := strings.CutPrefix(strings.TrimSpace(values[0]), `"`)
	text, closed := strings.CutSuffix(text, `"`)
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !quoted || !closed || len(values) > 1 {
		return nil, invalid(`If-Match: expected the ETag of the annotations, such as "3", or *`)
	}
	return &version, nil
}
