package httpserver

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/otograph/otograph/internal/service/tasks"
)

// getUsage handles GET /usage, an addition to the specification.
func (s *Server) getUsage(w http.ResponseWriter, r *request) error {
	q := queryOf(r)
	zone, _ := q.text("timezone")
	by, _ := q.text("by")
	asked, err := tasks.ParseUsage(zone, by, tasks.UsageGroups()...)
	if err != nil {
		return invalidBecause(err, "%s", err)
	}
	format := q.choice("format", "json", "csv")
	asked.Account, asked.Monthly = r.who.Account, q.choice("period", "month", "day") == "month"
	asked.From, asked.Until = q.time("from", asked.Zone), q.time("until", asked.Zone)
	if q.err != nil {
		return q.err
	}
	u, err := s.cfg.Tasks.Usage(r.Context(), asked)
	if errors.Is(err, tasks.ErrPeriod) {
		return invalidBecause(err, "%s", err)
	}
	if err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(w, http.StatusOK, u)
	}
	var out bytes.Buffer
	if err := u.WriteCSV(&out); err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "text/csv; charset=utf-8", out.Bytes())
	return nil
}
