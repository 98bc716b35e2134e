package httpserver

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

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
	q.Account = r.who.Account
	period, err := queryChoice(r, "period", "month", "day")
	if err != nil {
		return q, err
	}
	q.Monthly = period == "month"
	name, err := queryValue(r, "timezone")
	if err != nil {
		return q, err
	}
	if q.Zone, err = time.LoadLocation(cmp.Or(name, "UTC")); err != nil || name == time.Local.String() {
		return q, invalid("timezone: must be a name of the IANA database, such as Europe/Berlin, not %q", spec.Shorten(name))
	}
	if q.From, q.Until, err = bounds(r, q.Zone); err != nil {
		return q, err
	}
	by, err := queryValue(r, "by")
	if err != nil || by == "" {
		return q, err
	}
	q.By = strings.Split(by, ",")
	groups := tasks.UsageGroups()[1:] // without account
	for i, group := range q.By {
		if !slices.Contains(groups, group) || slices.Contains(q.By[:i], group) {
			return q, invalid("by: must be a list of %s, each once, such as key,model, not %q", strings.Join(groups, ", "), spec.Shorten(by))
		}
	}
	return q, nil
}

// queryChoice reads one of several values, the first if it is missing.
func queryChoice(r *request, name string, choices ...string) (string, error) {
	text, err := queryValue(r, name)
	if err == nil && !slices.Contains(choices, cmp.Or(text, choices[0])) {
		err = invalid("%s: must be %s, not %q", name, strings.Join(choices, " or "), spec.Shorten(text))
	}
	return cmp.Or(text, choices[0]), err
}
