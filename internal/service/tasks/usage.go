package tasks

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones, for machines that have none installed

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// ErrPeriod is returned for a query of usage that covers too many days.
var ErrPeriod = errors.New("the period is too long")

// UsageQuery selects charged tasks by the time of their charge, and the way to
// add them up.
type UsageQuery struct {
	Account string         // id; "" is all accounts
	Zone    *time.Location // of the days and months
	Monthly bool           // months instead of days
	// From and Until bound the period; Until is not part of it. A zero From is
	// the beginning of this month or, with Monthly, of the month eleven months
	// ago; a zero Until is no limit.
	From, Until time.Time
	By          []string // names of UsageGroups, and "account"
}

// UsageSums are the sums of some charged tasks.
type UsageSums struct {
	Tasks     int64         `json:"tasks"`
	Seconds   Seconds       `json:"seconds"` // decoded length, without tasks that an earlier release charged
	Minutes   int64         `json:"minutes"` // billable
	Amount    billing.Money `json:"amount"`
	FromPacks billing.Money `json:"from_packs"` // part of Amount that resource packs covered
	Charged   billing.Money `json:"charged"`    // the rest, which left the balance
}

// Seconds is a length in ten-thousandths of a second; its JSON is in seconds.
type Seconds = billing.Money

func (s *UsageSums) add(o UsageSums) {
	s.Tasks, s.Seconds, s.Minutes = s.Tasks+o.Tasks, s.Seconds+o.Seconds, s.Minutes+o.Minutes
	s.Amount, s.FromPacks, s.Charged = s.Amount+o.Amount, s.FromPacks+o.FromPacks, s.Charged+o.Charged
}

// UsageRow is the usage of one period and group.
type UsageRow struct {
	Period  string `json:"period"` // 2026-11-28 or 2026-11
	Account string `json:"account,omitempty"`
	Key     string `json:"key,omitempty"`
	Model   string `json:"model,omitempty"`
	Kind    string `json:"kind,omitempty"`
	UsageSums
}

// group returns the field that a group fills.
func (r *UsageRow) group(name string) *string {
	return map[string]*string{"account": &r.Account, "key": &r.Key, "model": &r.Model, "kind": &r.Kind}[name]
}

// Usage is a report; rows are sorted, and periods without usage are left out.
type Usage struct {
	By    []string   `json:"-"`
	Rows  []UsageRow `json:"usage"`
	Total UsageSums  `json:"total"`
}

// usageGroups are the groups of a report with their columns.
var usageGroups = map[string]string{
	"account": "(SELECT a.name FROM accounts a WHERE a.id = l.account_id)",
	"key":     "COALESCE(w.key_id, '')",
	"model":   "COALESCE(NULLIF(w.model, ''), s.mode)",
	"kind":    "COALESCE(w.kind, '')",
}

// UsageGroups returns the names of the groups of an account's report: "key" (an
// id, "" for users), "model" (that tasks named, else the billing mode) and
// "kind" (of work).
func UsageGroups() []string { return []string{"key", "model", "kind"} }

// ParseUsage returns a query for a time zone of the IANA database ("" is UTC)
// and a list of groups, separated by commas. Errors begin with the field.
func ParseUsage(zone, by string, groups ...string) (q UsageQuery, err error) {
	if q.Zone, err = time.LoadLocation(cmp.Or(zone, "UTC")); err != nil || zone == time.Local.String() {
		return q, fmt.Errorf("timezone: must be a name of the IANA database, such as Europe/Berlin, not %q", spec.Shorten(zone))
	}
	if by != "" {
		q.By = strings.Split(by, ",")
	}
	for i, group := range q.By {
		if !slices.Contains(groups, group) || slices.Contains(q.By[:i], group) {
			return q, fmt.Errorf("by: must be a list of %s, each once, such as key,model, not %q", strings.Join(groups, ", "), spec.Shorten(by))
		}
	}
	return q, nil
}

// usageDays limits a report, so that the database returns few rows.
const usageDays = 1100

// quarter is the unit in which the database adds up, in microseconds: in every
// time zone, days begin at a full quarter of an hour of UTC.
const quarter = 15 * 60 * 1_000_000

// Usage adds up the charged tasks of a query from the ledger. The sums of a
// period equal its deductions exactly. The error wraps ErrPeriod if the query
// covers too many days.
func (s *Owners) Usage(ctx context.Context, q UsageQuery) (Usage, error) {
	if q.From.IsZero() {
		now := s.now().In(q.Zone)
		q.From = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, q.Zone)
		if q.Monthly {
			q.From = time.Date(now.Year(), now.Month()-11, 1, 0, 0, 0, 0, q.Zone)
		}
	}
	end := cmp.Or(q.Until, s.now())
	if end.Sub(q.From) > usageDays*24*time.Hour {
		return Usage{}, fmt.Errorf("%w: at most %d days: ask for a later from or an earlier until", ErrPeriod, usageDays)
	}
	var args db.Args
	where := "l.type = 'deduction'" + strings.ReplaceAll(args.Created(q.From, q.Until), "created_at", "l.created_at")
	if q.Account != "" {
		where += " AND l.account_id = " + args.Add(q.Account)
	}
	columns, group := "", "1"
	for i, name := range q.By {
		columns += ", " + usageGroups[name]
		group += ", " + strconv.Itoa(i+2)
	}
	for _, sum := range []string{"w.seconds", "s.minutes", "s.total", "s.from_packs", "-l.amount"} {
		columns += ", CAST(COALESCE(SUM(" + sum + "), 0) AS bigint)"
	}
	rows, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, u *UsageRow) error {
		var at int64
		targets := []any{&at}
		for _, name := range q.By {
			targets = append(targets, u.group(name))
		}
		err := row.Scan(append(targets, &u.Seconds, &u.Minutes, &u.Amount, &u.FromPacks, &u.Charged, &u.Tasks)...)
		u.Period = db.Time(at * quarter).In(q.Zone).Format(time.DateOnly)
		if q.Monthly {
			u.Period = u.Period[:len("2026-11")]
		}
		return err
	}, fmt.Sprintf(`SELECT l.created_at / %d%s, COUNT(*) FROM ledger l JOIN settlements s ON s.task_id = l.task_id
		LEFT JOIN charged_work w ON w.task_id = l.task_id WHERE %s GROUP BY %s`, quarter, columns, where, group), args...)
	if err != nil {
		return Usage{}, s.wrap("usage", err)
	}
	return summed(q.By, rows), nil
}

// summed adds up the rows of the same period and groups.
func summed(by []string, rows []UsageRow) Usage {
	u := Usage{By: by, Rows: []UsageRow{}}
	at := map[UsageRow]int{} // by period and groups
	for _, r := range rows {
		u.Total.add(r.UsageSums)
		group := r
		group.UsageSums = UsageSums{}
		i, found := at[group]
		if !found {
			i, at[group] = len(u.Rows), len(u.Rows)
			u.Rows = append(u.Rows, group)
		}
		u.Rows[i].add(r.UsageSums)
	}
	slices.SortFunc(u.Rows, func(a, b UsageRow) int { return slices.Compare(a.Cells(by), b.Cells(by)) })
	return u
}

// WriteCSV writes the rows under a line with the names of the columns.
func (u Usage) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(u.Header()) // Flush keeps the error
	for _, r := range u.Rows {
		_ = out.Write(r.Cells(u.By))
	}
	out.Flush()
	return out.Error()
}

// Header returns the names of the columns.
func (u Usage) Header() []string {
	return slices.Concat([]string{"period"}, u.By, []string{"tasks", "seconds", "minutes", "amount", "from_packs", "charged"})
}

// Cells returns the row's columns of a report by groups.
func (r UsageRow) Cells(by []string) []string {
	cells := []string{r.Period}
	for _, name := range by {
		cells = append(cells, *r.group(name))
	}
	return append(cells, strconv.FormatInt(r.Tasks, 10), r.Seconds.Number(), strconv.FormatInt(r.Minutes, 10), r.Amount.String(), r.FromPacks.String(), r.Charged.String())
}

// recordWork writes a charged task's part of reports, with its charge.
func (s *core) recordWork(ctx context.Context, tx *sql.Tx, r row, seconds float64) error {
	var kinds []string
	for _, k := range []struct {
		name string
		on   bool
	}{{"asr", on(r.Options.EnableASR)}, {"diarize", on(r.Options.EnableDiarize)}, {"audio_events", on(r.Options.EnableAudioEvents)}, {"batch", r.BatchMode}, {"live", r.Extras.Live}} {
		if k.on {
			kinds = append(kinds, k.name)
		}
	}
	return db.Do(ctx, tx, `INSERT INTO charged_work (task_id, key_id, model, kind, seconds)
		SELECT id, COALESCE(key_id, ''), $2, $3, $4 FROM tasks WHERE id = $1`, r.ID, r.Extras.Model, strings.Join(kinds, "+"), int64(seconds*1e4+0.5))
}
