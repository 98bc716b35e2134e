package httpserver

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// getResult handles GET /tasks/:id/result. The result is streamed. Its speakers
// keep their original names.
func (s *Server) getResult(w http.ResponseWriter, r *request, id string) error {
	result, _, err := s.corrected(r, id)
	if err != nil {
		return err
	}
	defer result.Close()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return writeResult(w, result)
}

// corrected opens the result of a task with its corrections, or without them if
// the query says original=true. names maps speakers to their names.
func (s *Server) corrected(r *request, id string) (result *tasks.Result, names map[string]string, err error) {
	q := queryOf(r)
	original := q.bool("original")
	if q.err != nil {
		return nil, nil, q.err
	}
	if original {
		result, err = s.cfg.Tasks.Result(r.Context(), r.who.Account, id)
		return result, nil, err
	}
	return s.cfg.Tasks.Corrected(r.Context(), r.who.Account, id)
}

// writeResult writes the specification's Task result, and the additions that
// the task requested, one segment after the other.
func writeResult(to io.Writer, r *tasks.Result) error {
	head := r.Head
	added := struct {
		TaskID   string         `json:"task_id"`
		Billing  billing.Bill   `json:"billing"`
		Voices   []voices.Match `json:"voices,omitzero"`
		Warnings []spec.Warning `json:"warnings,omitzero"`
	}{TaskID: r.Task.ID, Billing: r.Bill, Warnings: head.Warnings}
	if recognized := r.Recognized; recognized != nil {
		added.Voices, added.Warnings = listed(recognized.Voices), listed(slices.Concat(head.Warnings, recognized.Warnings))
	}
	head.Segments, head.NumSpeakersProbability, head.Warnings = nil, nil, nil
	first, err := json.Marshal(added)
	if err != nil {
		return err
	}
	rest, err := json.Marshal(head)
	if err != nil {
		return err
	}
	rest, last, segments := bytes.Cut(rest, []byte(`"segments":[]`)) // no text has such quotes
	w := bufio.NewWriter(to)                                         // keeps the first error
	fmt.Fprintf(w, "%s,%s", first[:len(first)-1], rest[1:])
	if segments {
		_, _ = w.WriteString(`"segments":[`)
		comma := ""
		for segment, err := range r.Segments() {
			segment.Language = "" // not in the specification, as the marks of interpolated times
			for i := range segment.Words {
				segment.Words[i].Interpolated = false
			}
			text, failed := json.Marshal(segment)
			if err = cmp.Or(err, failed); err != nil {
				return err
			}
			fmt.Fprintf(w, "%s%s", comma, text)
			comma = ",\n"
		}
		_ = w.WriteByte(']')
	}
	_, _ = w.Write(last)
	return w.Flush()
}

// listed replaces a missing list with an empty one, because the specification
// has no null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// getWaveform handles GET /tasks/:id/waveform, an addition to the
// specification.
func (s *Server) getWaveform(w http.ResponseWriter, r *request, id string) error {
	waveform, err := s.cfg.Tasks.Waveform(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "application/octet-stream", waveform)
	return nil
}
