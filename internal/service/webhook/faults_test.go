package webhook_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// texts returns the rows of a query for one text.
func texts(t *testing.T, d *db.DB, query string) (all []string) {
	list, err := d.Read().QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer list.Close()
	for list.Next() {
		var row string
		require.NoError(t, list.Scan(&row))
		all = append(all, row)
	}
	require.NoError(t, list.Err())
	return all
}

// TestEveryFaultOfTheDatabase lets each call of the database fail once, in each
// operation on hooks and callbacks: the operation returns the error and changes
// nothing, and then succeeds.
func TestEveryFaultOfTheDatabase(t *testing.T) {
	broken := errors.New("the database is broken")
	var left int // calls until one fails; 0 for none
	d := dbtest.SQLite(t, db.Options{Wrap: dbtest.Faulty(func(dbtest.Call) (bool, error) {
		if left > 0 {
			if left--; left == 0 {
				return false, broken
			}
		}
		return false, nil
	})})
	f := taskstest.New(t, d, func(c *tasks.Config) {
		c.Clock = func() time.Time { return time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC) }
	})
	ctx, o := t.Context(), f.Outbox()
	rows := func() (all []string) {
		for _, query := range []string{
			"SELECT url || events || secret || COALESCE(old_secret, '') || budget || month || spent || warned || updated_at FROM hooks",
			"SELECT id || phase || claim || attempts || url || COALESCE(worker_id, '') FROM callbacks ORDER BY id",
			"SELECT status FROM tasks ORDER BY id",
		} {
			all = append(all, texts(t, d, query)...)
		}
		return all
	}
	var taken *webhook.Delivery
	take := func(context.Context) (err error) {
		taken, err = o.Next(ctx, "w", webhook.Busy{})
		return err
	}
	write := func(change func(tx *sql.Tx) error) func(context.Context) error {
		return func(context.Context) error { return d.Write(ctx, change) }
	}
	task := f.Add(nil)
	run, err := f.Next(ctx, "w", "m")
	require.NoError(t, err)
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"set", func(context.Context) error {
			_, err := o.SetHook(ctx, f.Account, webhook.Hook{URL: hookURL, Budget: 1})
			return err
		}},
		{"read", func(context.Context) error {
			_, err := o.Hook(ctx, f.Account)
			return err
		}},
		{"rotate", func(context.Context) error {
			_, err := o.RotateSecret(ctx, f.Account)
			return err
		}},
		{"complete", func(context.Context) error { return f.Complete(ctx, run, tasks.Outcome{Seconds: 1}) }},
		{"take", take},
		{"note", func(context.Context) error { return o.Note(ctx, taken, errors.New("refused")) }},
		{"take another", take},
		{"return", write(func(tx *sql.Tx) error {
			_, err := o.Return(ctx, tx, "w", "none")
			return err
		})},
		{"take again", take},
		{"list", func(context.Context) error {
			_, err := o.List(ctx, webhook.Filter{})
			return err
		}},
		{"deliver", func(context.Context) error { return o.Note(ctx, taken, nil) }},
		{"resend", func(context.Context) error { return o.Resend(ctx, "hook:"+task.ID) }},
		{"forget", o.Forget},
		{"remove", func(context.Context) error { return o.RemoveHook(ctx, f.Account) }},
	} {
		t.Run(strings.ReplaceAll(step.name, " ", "_"), func(t *testing.T) {
			before, faults := rows(), 0
			for {
				left = faults + 1
				err := step.do(ctx)
				if left > 0 { // no call is left that could fail
					left = 0
					require.NoError(t, err)
					break
				}
				require.ErrorIs(t, err, broken, "fault %d", faults)
				require.Equal(t, before, rows(), "fault %d", faults)
				faults++
			}
			assert.Positive(t, faults)
		})
	}
	assert.Zero(t, f.Count("SELECT COUNT(*) FROM hooks"))
	_, err = webhook.NewNotifier(o, nil, webhook.NotifierConfig{})
	assert.ErrorContains(t, err, "needs HTTP")
}

// TestUnwrittenOutcomeIsSentAgain: a delivery whose outcome the database
// refuses is made again, with the same id. A notifier ends although its
// database fails.
func TestUnwrittenOutcomeIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent, down atomic.Bool
		var refused atomic.Int32
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{Wrap: dbtest.Faulty(func(c dbtest.Call) (bool, error) {
			if down.Load() || sent.Load() && c.Op == "commit" && refused.Add(1) == 1 {
				return false, errors.New("the database is broken")
			}
			return false, nil
		})}))
		box := &postbox{answer: func(int, *http.Request) (*http.Response, error) {
			sent.Store(true)
			return respond(200, strings.NewReader(""))
		}}
		f.Add(func(r *tasks.Request) { r.CallbackURL = "https://receiver.example/" })
		c, err := f.Next(t.Context(), "w", "m")
		require.NoError(t, err)
		warned := tasks.Outcome{Seconds: 1}
		warned.Result.Warnings = []spec.Warning{{Option: spec.WarnAudio, Reason: "cut short"}}
		require.NoError(t, f.Complete(t.Context(), c, warned))
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Heartbeat: time.Hour})
		time.Sleep(time.Minute)
		posts := box.all()
		require.Len(t, posts, 2)
		assert.Equal(t, posts[0].headers.Get("Webhook-Id"), posts[1].headers.Get("Webhook-Id"))
		assert.Equal(t, posts[0].body, posts[1].body)
		assert.Contains(t, posts[0].headers.Get("Warning"), "cut short")
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'delivered' AND attempts = 1"))
		down.Store(true)
		stop()
		down.Store(false)
	})
}
