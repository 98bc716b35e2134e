package tasks_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// charge is a charged task of the simulated year.
type charge struct {
	at                time.Time
	key, model, kind  string
	seconds, minutes  int64
	amount, fromPacks billing.Money
	account           string
}

// simulatedYear returns charges from some days before 2026 until
// some days after it: at random times, and just before, at and after the
// beginning of every day of the zones (short: of every fifth and of months) and
// every change of their clocks.
func simulatedYear(zones []*time.Location, accounts []string, short bool) (all []charge) {
	random := rand.New(rand.NewPCG(1, 62))
	begin := time.Date(2025, 12, 29, 0, 0, 0, 0, time.UTC)
	add := func(at time.Time) {
		amount := billing.Money(random.Int64N(50_000))
		c := charge{
			at: at.UTC(), key: []string{"", "key-a", "key-b"}[random.IntN(3)], model: []string{"", "large", "small"}[random.IntN(3)],
			kind: []string{"asr", "asr+diarize", "audio_events+batch"}[random.IntN(3)], seconds: random.Int64N(36_000_000),
			minutes: 1 + random.Int64N(300), amount: amount, account: accounts[random.IntN(len(accounts))],
		}
		if random.IntN(4) == 0 {
			c.fromPacks = billing.Money(random.Int64N(int64(amount) + 1))
		}
		all = append(all, c)
	}
	for _, zone := range zones {
		for day := begin.In(zone); day.Year() < 2027; day = time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, zone) {
			if short && day.Day()%5 != 1 {
				continue
			}
			for _, near := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
				add(day.Add(near))
			}
		}
		_, before := begin.In(zone).Zone()
		for at := begin; at.Year() < 2027; at = at.Add(15 * time.Minute) {
			if _, offset := at.In(zone).Zone(); offset != before {
				before = offset
				add(at.Add(-time.Microsecond))
				add(at)
			}
		}
	}
	month := chargesAMonth
	if short {
		month = 100
	}
	for len(all) < 12*month {
		add(begin.Add(time.Duration(random.Int64N(int64(372*24*time.Hour)/1000)) * 1000))
	}
	return all
}

// write enters the charges as settlements, ledger entries and their work.
func write(t *testing.T, d *db.DB, all []charge) {
	t.Helper()
	insert := func(tx *sql.Tx, into string, rows [][]any) error {
		var args db.Args
		marks := make([]string, len(rows))
		for i, row := range rows {
			marks[i] = "(" + args.Add(row...) + ")"
		}
		_, err := tx.Exec("INSERT INTO "+into+" VALUES "+strings.Join(marks, ","), args...)
		return err
	}
	const batch = 600
	for first := 0; first < len(all); first += batch {
		require.NoError(t, d.Write(t.Context(), func(tx *sql.Tx) error {
			var settled, entries, work [][]any
			for i, c := range all[first:min(first+batch, len(all))] {
				id, at := fmt.Sprintf("task-%d", first+i), db.Micros(c.at)
				settled = append(settled, []any{id, c.account, "standard", c.minutes, "{}", c.amount, c.fromPacks, 0, at + 5})
				entries = append(entries, []any{"entry-" + id, c.account, id, "deduction", c.fromPacks - c.amount, 0, c.fromPacks - c.amount, "", at})
				work = append(work, []any{id, c.key, c.model, c.kind, c.seconds})
			}
			if err := insert(tx, "settlements (task_id, account_id, mode, minutes, detail, total, from_packs, balance_after, settled_at)", settled); err != nil {
				return err
			}
			if err := insert(tx, "charged_work (task_id, key_id, model, kind, seconds)", work); err != nil {
				return err
			}
			return insert(tx, "ledger (id, account_id, task_id, type, amount, balance_before, balance_after, description, created_at)", entries)
		}))
	}
}

// expected adds up the charges that a query selects, one by one.
func expected(q tasks.UsageQuery, all []charge) (rows map[string]tasks.UsageSums, total tasks.UsageSums) {
	rows = map[string]tasks.UsageSums{}
	for _, c := range all {
		if c.account != q.Account || c.at.Before(q.From) || !c.at.Before(q.Until) {
			continue
		}
		layout := time.DateOnly
		if q.Monthly {
			layout = "2006-01"
		}
		name := c.at.In(q.Zone).Format(layout)
		for _, group := range q.By {
			value := map[string]string{"key": c.key, "model": c.model, "kind": c.kind}[group]
			if group == "model" && value == "" {
				value = "standard"
			}
			name += "|" + value
		}
		for _, s := range []*tasks.UsageSums{new(rows[name]), &total} {
			s.Tasks, s.Seconds, s.Minutes = s.Tasks+1, s.Seconds+tasks.Seconds(c.seconds), s.Minutes+c.minutes
			s.Amount, s.FromPacks, s.Charged = s.Amount+c.amount, s.FromPacks+c.fromPacks, s.Charged+c.amount-c.fromPacks
			if s != &total {
				rows[name] = *s
			}
		}
	}
	return rows, total
}

// TestUsageOfAYear: the sums of a simulated year equal the sums of its charges
// and of the ledger exactly, by day and month, in zones with clock changes of
// an hour and of half an hour, and without changes.
func TestUsageOfAYear(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		var zones []*time.Location
		for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"} {
			zone, err := time.LoadLocation(name)
			require.NoError(t, err)
			zones = append(zones, zone)
		}
		all := simulatedYear(zones, []string{f.Account, f.NewAccount("other", 0)}, testing.Short())
		write(t, d, all)
		queries := 0
		for _, zone := range zones {
			for _, q := range []tasks.UsageQuery{
				{Monthly: true},
				{By: []string{"key", "model", "kind"}},
				{Monthly: true, By: []string{"kind"}, From: time.Date(2026, 3, 8, 5, 17, 3, 1000, time.UTC), Until: time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)},
			} {
				q.Account, q.Zone = f.Account, zone
				if q.From.IsZero() {
					q.From, q.Until = time.Date(2026, 1, 1, 0, 0, 0, 0, zone), time.Date(2027, 1, 1, 0, 0, 0, 0, zone)
				}
				u, err := f.Usage(t.Context(), q)
				require.NoError(t, err)
				want, total := expected(q, all)
				require.Len(t, u.Rows, len(want))
				for _, r := range u.Rows {
					require.Equal(t, want[strings.Join(r.Cells(q.By)[:1+len(q.By)], "|")], r.UsageSums, "%s %v", zone, r)
				}
				assert.Equal(t, total, u.Total)
				assert.Equal(t, -int(total.Charged), f.Count("SELECT CAST(SUM(amount) AS bigint) FROM ledger WHERE account_id = $1 AND type = 'deduction' AND created_at >= $2 AND created_at < $3",
					f.Account, db.Micros(q.From), db.Micros(q.Until)))
				queries++
			}
		}
		t.Logf("%d charges, %d reports in %d time zones: each sum is exact to the ten-thousandth", len(all), queries, len(zones))
	})
}

// TestUsageOfTasks: the report names the key, model and work of each charged
// task, also after the task has been deleted, and of a task canceled after part
// of its text was delivered; a failed task costs nothing.
func TestUsageOfTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		other := f.NewAccount("other", 10*billing.Unit)
		_, _, err := f.Accounts.CreateKey(t.Context(), f.Account, accounts.KeyOptions{ID: "key-1"})
		require.NoError(t, err)
		first := f.Add(func(r *tasks.Request) { r.Key, r.Extras.Model = "key-1", "whisper-large" })
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 61.5}))
		require.NoError(t, f.Delete(t.Context(), f.Account, first.ID))
		f.Add(func(r *tasks.Request) { r.Account, r.Options.EnableDiarize, r.Batch = other, new(false), true })
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
		f.Add(nil)
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
		left := f.Add(nil)
		f.Take()
		f.Exec("INSERT INTO live_segments (task_id, attempt, first, segments) VALUES ($1, 1, 0, '[{\"end\": 12.25}]')", left.ID)
		_, err = f.Leave(t.Context(), f.Account, left.ID)
		require.NoError(t, err)

		u, err := f.Usage(t.Context(), tasks.UsageQuery{Zone: time.UTC, Monthly: true, By: append([]string{"account"}, tasks.UsageGroups()...)})
		require.NoError(t, err)
		month := time.Now().UTC().Format("2006-01")
		var csv strings.Builder
		require.NoError(t, u.WriteCSV(&csv))
		assert.Equal(t, strings.ReplaceAll(`period,account,key,model,kind,tasks,seconds,minutes,amount,from_packs,charged
M,customer,,zh_lite,asr+diarize+audio_events,1,12.25,1,0.0067,0.0000,0.0067
M,customer,key-1,whisper-large,asr+diarize+audio_events,1,61.5,2,0.0267,0.0000,0.0267
M,other,,standard,asr+audio_events+batch,1,3,1,0.0058,0.0000,0.0058
`, "M", month), csv.String())
		text, err := json.Marshal(u)
		require.NoError(t, err)
		assert.Contains(t, string(text), `{"period":"`+month+`","account":"customer","key":"key-1","model":"whisper-large","kind":"asr+diarize+audio_events","tasks":1,"seconds":61.5,"minutes":2,"amount":0.0267,"from_packs":0,"charged":0.0267}`)
		assert.Contains(t, string(text), `"total":{"tasks":3,`)

		_, err = f.Usage(t.Context(), tasks.UsageQuery{Zone: time.UTC, From: time.Now().AddDate(-4, 0, 0)})
		require.ErrorIs(t, err, tasks.ErrPeriod)
	})
}
