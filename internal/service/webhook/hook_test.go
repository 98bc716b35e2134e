package webhook_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

const hookURL = "https://hook.example/events"

// clocked returns a fixture whose clock shows the time that the test stores.
func clocked(t *testing.T, d *db.DB, at time.Time) (*taskstest.Fixture, *atomic.Pointer[time.Time]) {
	var now atomic.Pointer[time.Time]
	now.Store(&at)
	return taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return *now.Load() } }), &now
}

// deliver runs a notifier until no callback waits, and returns the deliveries.
func deliver(f *taskstest.Fixture, status int) []post {
	box := &postbox{answer: func(int, *http.Request) (*http.Response, error) { return respond(status, strings.NewReader("")) }}
	stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Poll: 25 * time.Millisecond})
	defer stop()
	require.Eventually(f.T, func() bool {
		return f.Count("SELECT COUNT(*) FROM callbacks WHERE phase IN ('queued', 'running')") == 0
	}, time.Minute, 25*time.Millisecond)
	return box.all()
}

// signatures returns the signatures that secrets must make of a hook's message.
func signatures(p post, secrets ...string) string {
	var list []string
	at, _ := strconv.ParseInt(p.headers.Get("Webhook-Timestamp"), 10, 64)
	for _, secret := range secrets {
		list = append(list, webhook.Headers(p.headers.Get("Webhook-Id"), secret, []byte(p.body), time.Unix(at, 0)).Get("Webhook-Signature"))
	}
	return strings.Join(list, " ")
}

// TestHook follows an account's hook through its states: it gets the events
// that it selects beside a task's own callback, both secrets sign for a day
// after a rotation, waiting messages follow a new URL, and nothing remains of a
// removed hook or of the message about a deleted task.
func TestHook(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		f, now := clocked(t, d, time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC))
		o, other := f.Outbox(), f.NewAccount("other", 0)
		finish(f, "https://own.example/", "its own secret")
		assert.Len(t, deliver(f, 200), 1, "no hook, nothing else is sent")
		for _, refused := range []error{
			o.RemoveHook(ctx, f.Account),
			func() error { _, err := o.RotateSecret(ctx, f.Account); return err }(),
			func() error { _, err := o.Hook(ctx, f.Account); return err }(),
		} {
			require.ErrorIs(t, refused, webhook.ErrNoHook)
		}
		first, err := f.Outbox().SetHook(ctx, f.Account, webhook.Hook{URL: hookURL, Events: []string{"task.done"}})
		require.NoError(t, err)
		require.Regexp(t, `^whsec_[A-Za-z0-9+/]{43}=$`, first)
		again, err := f.Outbox().SetHook(ctx, f.Account, webhook.Hook{URL: hookURL, Events: []string{"task.done"}})
		require.NoError(t, err)
		assert.Empty(t, again, "a secret is returned once")

		task := finish(f, "https://own.example/", "its own secret")
		c := f.Add(func(r *tasks.Request) {})
		require.NoError(t, f.Release(ctx, f.Take(), tasks.EndPermanent, "broken"))
		require.Equal(t, tasks.StatusFailed, f.Row(c.ID).Status)
		var sent post
		for _, p := range deliver(f, 200) {
			if p.url == hookURL {
				require.Empty(t, sent.url, "a failed task is not selected")
				sent = p
			} else {
				assert.Contains(t, p.headers, "X-Signature")
				assert.NotContains(t, p.body, `"type"`)
			}
		}
		var message struct {
			Type      string
			Timestamp time.Time
			Data      map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(sent.body), &message))
		assert.Equal(t, "task.done", message.Type)
		assert.Equal(t, *now.Load(), message.Timestamp)
		assert.Equal(t, task.ID, message.Data["task_id"])
		assert.Equal(t, signatures(sent, first), sent.headers.Get("Webhook-Signature"))
		assert.NotContains(t, sent.headers, "X-Signature")

		second, err := o.RotateSecret(ctx, f.Account)
		require.NoError(t, err)
		finish(f, "", "")
		sent = deliver(f, 200)[0]
		assert.Equal(t, signatures(sent, second, first), sent.headers.Get("Webhook-Signature"), "both sign")
		expired := now.Load().Add(24 * time.Hour)
		now.Store(&expired)
		finish(f, "", "")
		sent = deliver(f, 200)[0]
		assert.Equal(t, signatures(sent, second), sent.headers.Get("Webhook-Signature"), "the old one has expired")
		require.NoError(t, o.Forget(ctx))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM hooks WHERE old_secret IS NOT NULL"))

		finish(f, "", "")
		_, err = f.Outbox().SetHook(ctx, f.Account, webhook.Hook{URL: "https://moved.example/"})
		require.NoError(t, err)
		assert.Equal(t, "https://moved.example/", deliver(f, 200)[0].url)
		task = finish(f, "", "")
		require.NoError(t, f.Delete(ctx, f.Account, task.ID))
		assert.Empty(t, deliver(f, 200))

		_, err = f.Outbox().SetHook(ctx, other, webhook.Hook{URL: hookURL})
		require.NoError(t, err)
		finish(f, "https://own.example/", "")
		err = o.RemoveHook(ctx, f.Account)
		require.NoError(t, err)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM hooks"))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM callbacks WHERE task_id LIKE 'hook:%'"))
		assert.Len(t, deliver(f, 200), 1, "the task's own callback stays")
	})
}

// TestHookOfARetriedTask: the message about a task that is run again is
// withdrawn, whether it was delivered or not, and its new end is announced.
func TestHookOfARetriedTask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		_, err := f.Outbox().SetHook(t.Context(), f.Account, webhook.Hook{URL: hookURL})
		require.NoError(t, err)
		task := f.Add(func(r *tasks.Request) { r.URL = "https://sound.example/a.wav" })
		for _, delivered := range []int{1, 0, 1} {
			require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "broken"))
			assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE task_id = $1", "hook:"+task.ID))
			if delivered > 0 {
				assert.Len(t, deliver(f, 200), delivered)
			}
			_, err := f.Retry(t.Context(), task.ID)
			require.NoError(t, err)
			assert.Zero(t, f.Count("SELECT COUNT(*) FROM callbacks"))
		}
	})
}

// TestHookIsChecked: a hook that could not work is refused with its field.
func TestHookIsChecked(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	for field, h := range map[string]webhook.Hook{
		"url: ":      {URL: "ftp://hook.example/"},
		"url: must":  {URL: "/events"},
		"events: ":   {URL: hookURL, Events: []string{"task.done", "task.done"}},
		"events: m":  {URL: hookURL, Events: []string{"task.gone"}},
		"budget: ":   {URL: hookURL, Budget: -1},
		"timezone: ": {URL: hookURL, Zone: "Mars/Olympus"},
	} {
		_, err := f.Outbox().SetHook(t.Context(), f.Account, h)
		require.ErrorIs(t, err, webhook.ErrHook)
		assert.True(t, strings.HasPrefix(err.Error(), field), "%s", err)
	}
	require.NoError(t, f.Accounts.Suspend(t.Context(), f.Account))
	_, err := f.Outbox().SetHook(t.Context(), f.Account, webhook.Hook{URL: hookURL})
	require.ErrorIs(t, err, accounts.ErrSuspended, "it may be deleted meanwhile")
}

// TestHookThatFails: a hook's message is retried and abandoned like a callback.
// A hook whose receiver answers 410 is switched off until it is set again.
func TestHookThatFails(t *testing.T) {
	for status, attempts := range map[int]int{500: 4, 410: 1} {
		synctest.Test(t, func(t *testing.T) {
			f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
			_, err := f.Outbox().SetHook(t.Context(), f.Account, webhook.Hook{URL: hookURL})
			require.NoError(t, err)
			task := finish(f, "", "")
			box := &postbox{answer: func(int, *http.Request) (*http.Response, error) { return respond(status, strings.NewReader("")) }}
			stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Poll: virtualPoll})
			time.Sleep(100 * time.Second)
			stop()
			assert.Len(t, box.all(), attempts)
			assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'"))
			require.NoError(t, f.Outbox().Resend(t.Context(), "hook:"+task.ID))
			messages := 2
			if status == http.StatusGone {
				h, err := f.Outbox().Hook(t.Context(), f.Account)
				require.NoError(t, err)
				assert.Empty(t, h.Events)
				messages = 1
			}
			finish(f, "", "")
			assert.Equal(t, messages, f.Count("SELECT COUNT(*) FROM callbacks"))
			_, err = f.Outbox().SetHook(t.Context(), f.Account, webhook.Hook{URL: hookURL})
			require.NoError(t, err)
			finish(f, "", "")
			assert.Equal(t, messages+1, f.Count("SELECT COUNT(*) FROM callbacks"))
		})
	}
}

// warnings returns how often each event of the budget was announced.
func warnings(f *taskstest.Fixture) (warning, reached int) {
	return f.Count("SELECT COUNT(*) FROM callbacks WHERE body LIKE '%budget.warning%'"), f.Count("SELECT COUNT(*) FROM callbacks WHERE body LIKE '%budget.reached%'")
}

// TestBudgetWarnsOnceAMonth charges tasks concurrently from several workers:
// each share of the budget is announced once a month of the account's zone, the
// sum equals the report of usage, and a changed budget counts anew.
func TestBudgetWarnsOnceAMonth(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		const zone = "Pacific/Kiritimati" // UTC+14: December begins on 30 November at 10:00 UTC
		f, now := clocked(t, d, time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
		price := func() billing.Money {
			task := finish(f, "", "")
			bill, err := f.Billing().Bill(ctx, f.Account, task.ID)
			require.NoError(t, err)
			return bill.Amount
		}()
		require.Positive(t, price)
		charge := func(n int) {
			for range n {
				f.Add(nil)
			}
			var workers sync.WaitGroup
			for range 4 {
				workers.Go(func() {
					for {
						c, err := f.Next(ctx, "w", "m")
						if !assert.NoError(t, err) || c == nil {
							return
						}
						assert.NoError(t, f.Complete(ctx, c, tasks.Outcome{Seconds: 1}))
					}
				})
			}
			workers.Wait()
		}
		set := func(budget billing.Money) {
			_, err := f.Outbox().SetHook(ctx, f.Account, webhook.Hook{URL: hookURL, Budget: budget, Zone: zone, Events: []string{webhook.EventWarning, webhook.EventReached}})
			require.NoError(t, err)
		}
		expect := func(month string, tasks int, warning, reached int) {
			t.Helper()
			h, err := f.Outbox().Hook(ctx, f.Account)
			require.NoError(t, err)
			assert.Equal(t, month, h.Month)
			assert.Equal(t, price*billing.Money(tasks), h.Spent)
			w, r := warnings(f)
			assert.Equal(t, []int{warning, reached}, []int{w, r})
		}
		set(10 * price)
		expect("2026-11", 1, 0, 0) // the earlier task counts
		charge(6)
		expect("2026-11", 7, 0, 0)
		charge(8)
		expect("2026-11", 15, 1, 1)
		set(10 * price) // no change
		charge(1)
		expect("2026-11", 16, 1, 1)
		set(20 * price) // 80 % of the new budget is reached at once
		expect("2026-11", 16, 2, 1)
		charge(4)
		expect("2026-11", 20, 2, 2)

		december := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
		now.Store(&december)
		expect("2026-12", 0, 2, 2)
		charge(16)
		expect("2026-12", 16, 3, 2)
		late := december.Add(-time.Second) // by the clock of another server
		now.Store(&late)
		charge(5)
		now.Store(&december)
		expect("2026-12", 16, 3, 2)
		charge(4)
		expect("2026-12", 20, 3, 3)

		at, err := time.LoadLocation(zone)
		require.NoError(t, err)
		usage, err := f.Usage(ctx, tasks.UsageQuery{Account: f.Account, Zone: at, Monthly: true})
		require.NoError(t, err)
		require.Len(t, usage.Rows, 2)
		assert.Equal(t, 25*price, usage.Rows[0].Amount)
		assert.Equal(t, 20*price, usage.Rows[1].Amount)
		f.Exact()
	})
}

// TestStandardWebhooksLibrary verifies messages with the library of Standard
// Webhooks for Python, if it is installed: with each of two secrets during a
// rotation, and not with another one.
func TestStandardWebhooksLibrary(t *testing.T) {
	python := cmp.Or(os.Getenv("OTOGRAPH_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import standardwebhooks").Run(); err != nil {
		t.Skipf("%s has no standardwebhooks: make test-clients", python)
	}
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	first, err := f.Outbox().SetHook(t.Context(), f.Account, webhook.Hook{URL: hookURL})
	require.NoError(t, err)
	second, err := f.Outbox().RotateSecret(t.Context(), f.Account)
	require.NoError(t, err)
	finish(f, "", "")
	sent := deliver(f, 200)
	require.Len(t, sent, 1)
	stranger := "whsec_" + strings.Repeat("A", 43) + "="
	for secret, good := range map[string]bool{first: true, second: true, stranger: false} {
		input, err := json.Marshal(map[string]any{"secret": secret, "body": sent[0].body, "headers": map[string]string{
			"webhook-id": sent[0].headers.Get("Webhook-Id"), "webhook-timestamp": sent[0].headers.Get("Webhook-Timestamp"), "webhook-signature": sent[0].headers.Get("Webhook-Signature"),
		}})
		require.NoError(t, err)
		cmd := exec.Command(python, "-c", `import json, sys; from standardwebhooks import Webhook
m = json.load(sys.stdin); print(Webhook(m["secret"]).verify(m["body"], m["headers"])["type"])`)
		cmd.Stdin, cmd.Env = bytes.NewReader(input), os.Environ()
		out, err := cmd.CombinedOutput()
		assert.Equal(t, good, err == nil, "%s", out)
		if good {
			assert.Equal(t, "task.done\n", string(out))
		}
	}
}
