package httpserver

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// getUsage handles GET /usage, an addition to the specification.
func (s *Server) getUsage(w http.ResponseWriter, r *request) error {
	q, err := usageQuery(r)
	if err != nil {
		return err
	}
	format, err := queryChoice(r, "format", "json", "csv")
	if err != nil {
		return err
	}
	u, err := s.cfg.Tasks.Usage(r.Context(), q)
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

func usageQuery(r *request) (q tasks.UsageQuery, err error) {
	zone, err := queryValue(r, "timezone")
	if err != nil {
		return q, err
	}
	by, err := queryValue(r, "by")
	if err != nil {
		return q, err
	}
	if q, err = tasks.ParseUsage(zone, by, tasks.UsageGroups()...); err != nil {
		return q, invalidBecause(err, "%s", err)
	}
	period, err := queryChoice(r, "period", "month", "day")
	if err != nil {
		return q, err
	}
	q.Account, q.Monthly = r.who.Account, period == "month"
	q.From, q.Until, err = bounds(r, q.Zone)
	return q, err
}

// queryChoice reads one of several values, the first if it is missing.
func queryChoice(r *request, name string, choices ...string) (string, error) {
	text, err := queryValue(r, name)
	if err == nil && !slices.Contains(choices, cmp.Or(text, choices[0])) {
		err = invalid("%s: must be %s, not %q", name, strings.Join(choices, " or "), spec.Shorten(text))
	}
	return cmp.Or(text, choices[0]), err
}
