package httpserver

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/spec"
)

// query reads the parameters of a request's URL. err is the first error.
type query struct {
	values url.Values
	err    error
}

func queryOf(r *request) *query { return &query{values: r.query} }

// refuse sets the error, unless there is one.
func (q *query) refuse(format string, args ...any) {
	q.err = cmp.Or(q.err, error(invalid(format, args...)))
}

// text returns a parameter, and whether it is given.
func (q *query) text(name string) (text string, given bool) {
	values := q.values[name]
	if len(values) == 0 {
		return "", false
	}
	if !utf8.ValidString(values[0]) {
		q.refuse("%s: not valid UTF-8", name)
	}
	return values[0], true
}

// choice returns one of several values, the first if there is none.
func (q *query) choice(name string, choices ...string) string {
	text, _ := q.text(name)
	text = cmp.Or(text, choices[0])
	if !slices.Contains(choices, text) {
		q.refuse("%s: must be %s, not %q", name, strings.Join(choices, " or "), spec.Shorten(text))
	}
	return text
}

// bool returns true or false; false if there is none.
func (q *query) bool(name string) bool { return q.choice(name, "false", "true") == "true" }

func (q *query) number(name string, def, most int) int {
	text, given := q.text(name)
	if !given {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || text[0] == '+' {
		q.refuse("%s: must be an integer from 1 to %d, not %q", name, most, spec.Shorten(text))
	}
	return n
}

// time returns a time or a date, whose day begins in zone. The plus of a zone is
// a space in a query that was not escaped.
func (q *query) time(name string, zone *time.Location) time.Time {
	text, given := q.text(name)
	if !given {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, strings.ReplaceAll(text, " ", "+"), zone); err == nil {
			return t
		}
	}
	q.refuse("%s: must be a time (RFC 3339), such as 2026-11-28T09:00:00Z or 2026-11-28, not %q", name, spec.Shorten(text))
	return time.Time{}
}

// Bounds on paging.
const (
	defaultPageSize = 20
	maxPageSize     = 100
	maxPage         = 1_000_000_000
)

// page returns page and page_size, and the additions to the specification.
func (q *query) page() billing.Page {
	p := billing.Page{Number: q.number("page", 1, maxPage), Size: q.number("page_size", defaultPageSize, maxPageSize), From: q.time("from", time.UTC), Until: q.time("until", time.UTC)}
	if after, _ := q.text("after"); after != "" {
		var ok bool
		if p.After, ok = canonicalID(after); !ok {
			q.refuse("after: must be the id of an entry of this list, not %q", spec.Shorten(after))
		}
	}
	return p
}
