package tasks_test

import (
	"errors"
	"testing"
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

// TestAnswersGoWithTheirTasks: deleting a task deletes it from the answer of
// its idempotency key, and the same request, sent again, makes no second task.
func TestAnswersGoWithTheirTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		kept := func(text string) int {
			return f.Count("SELECT COUNT(*) FROM idempotency WHERE answer LIKE $1", "%"+text+"%")
		}
		end := func() { require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x")) }

		r := f.Request(func(r *tasks.Request) {
			r.Filename = "private diary.wav"
			r.Options = spec.EffectiveOptions{Hotwords: []string{"private name"}}
		})
		key := tasks.Idempotency{Key: "order-1", BodyHash: "h"}
		task, replayed, err := f.Create(t.Context(), r, key)
		require.NoError(t, err)
		require.False(t, replayed)
		end()
		r.Audio = f.Audio("sent again")
		again, replayed, err := f.Create(t.Context(), r, key)
		require.NoError(t, err)
		assert.True(t, replayed)
		assert.Equal(t, task.ID, again.ID)
		require.Equal(t, 1, kept("private"))
		require.NoError(t, f.Delete(t.Context(), f.Account, task.ID))
		assert.Zero(t, kept("private"))
		r.Audio = f.Audio("sent again")
		_, _, err = f.Create(t.Context(), r, key)
		require.ErrorIs(t, err, tasks.ErrDeleted)
		require.ErrorIs(t, err, tasks.ErrIdempotencyConflict)
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM tasks"), "no second task")
		f.Exact()

		// Only the deleted task of a batch is removed.
		batch := []tasks.Request{
			f.Request(func(r *tasks.Request) { r.URL, r.Filename, r.Batch = "https://a.example/1", "first.wav", true }),
			f.Request(func(r *tasks.Request) { r.URL, r.Filename, r.Batch = "https://a.example/2", "second.wav", true }),
		}
		key = tasks.Idempotency{Key: "order-2", BodyHash: "b"}
		items, _, err := f.CreateBatch(t.Context(), batch, key)
		require.NoError(t, err)
		f.Exec("UPDATE tasks SET status = 'failed', phase = 'delayed' WHERE id = $1", items[0].Task.ID)
		require.NoError(t, f.Delete(t.Context(), f.Account, items[0].Task.ID))
		assert.Zero(t, kept("first.wav"))
		second, replayed, err := f.CreateBatch(t.Context(), batch, key)
		require.NoError(t, err)
		assert.True(t, replayed)
		assert.Nil(t, second[0].Task)
		assert.Equal(t, tasks.ErrDeleted.Error(), second[0].Error)
		assert.Equal(t, items[1].Task.ID, second[1].Task.ID)
	})
}

// TestDeletionKeepsALaterAnswer: if a key was used again after its 24 hours,
// the later answer stays when the earlier task is deleted.
func TestDeletionKeepsALaterAnswer(t *testing.T) {
	now := time.Now()
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.Clock = func() time.Time { return now } })
	key := tasks.Idempotency{Key: "daily", BodyHash: "h"}
	first, _, err := f.Create(t.Context(), f.Request(nil), key)
	require.NoError(t, err)
	require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
	now = now.Add(25 * time.Hour)
	second, replayed, err := f.Create(t.Context(), f.Request(nil), key)
	require.NoError(t, err)
	require.False(t, replayed)
	require.NoError(t, f.Delete(t.Context(), f.Account, first.ID))
	again, replayed, err := f.Create(t.Context(), f.Request(nil), key)
	require.NoError(t, err)
	assert.True(t, replayed)
	assert.Equal(t, second.ID, again.ID)
}

// TestCallbackSecretsGo: once a task is final, only its callback has the URL
// and the secret. The callback can be sent again for a week, or for 30 days if
// it was abandoned; then both are deleted, whether the task is kept or not.
func TestCallbackSecretsGo(t *testing.T) {
	for name, tt := range map[string]struct {
		failure error
		phase   string
		keeps   time.Duration
	}{
		"delivered": {nil, "delivered", 7 * 24 * time.Hour},
		"given up":  {errors.New("no"), "given_up", 30 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				now := time.Now()
				f := taskstest.New(t, d, func(c *tasks.Config) {
					c.Clock, c.CallbackDelays = func() time.Time { return now }, []time.Duration{}
				})
				secrets := func(table, url, secret string) int {
					return f.Count("SELECT COUNT(*) FROM " + table + " WHERE " + url + " LIKE '%hooks.example%' OR " + secret + " = 'a shared secret'")
				}
				task := f.Add(func(r *tasks.Request) { r.CallbackURL, r.CallbackSecret = "https://hooks.example/", "a shared secret" })
				require.Equal(t, 1, secrets("tasks", "callback_url", "callback_secret"))
				require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
				assert.Zero(t, secrets("tasks", "callback_url", "callback_secret"))
				assert.Equal(t, 1, secrets("callbacks", "url", "secret"))

				deliver := func() {
					delivery, err := f.Outbox().Next(t.Context(), "n", webhook.Busy{})
					require.NoError(t, err)
					require.NotNil(t, delivery)
					require.NoError(t, f.Outbox().Note(t.Context(), delivery, tt.failure))
					list, err := f.Outbox().List(t.Context(), webhook.Filter{TaskID: task.ID})
					require.NoError(t, err)
					require.Equal(t, tt.phase, list[0].Phase)
				}
				deliver()
				now = now.Add(tt.keeps - time.Hour)
				require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
				require.NoError(t, f.Outbox().Resend(t.Context(), task.ID), "it can be sent again")
				deliver()
				now = now.Add(tt.keeps + time.Hour)
				require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
				assert.Zero(t, secrets("callbacks", "url", "secret"))
				assert.ErrorIs(t, f.Outbox().Resend(t.Context(), task.ID), webhook.ErrNotFound)
				assert.Equal(t, tasks.StatusDone, f.Row(task.ID).Status, "the task itself is kept")
			})
		})
	}
}

// TestRetryKeepsTheCallback: a retried task announces its new end to the same
// receiver, signed with the same secret.
func TestRetryKeepsTheCallback(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(func(r *tasks.Request) {
			r.URL, r.CallbackURL, r.CallbackSecret = "https://source.example/a", "https://hooks.example/", "a shared secret"
		})
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndPermanent, "x"))
		_, err := f.Retry(t.Context(), task.ID)
		require.NoError(t, err)
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM callbacks"), "the old end is no longer announced")
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE url = 'https://hooks.example/' AND secret = 'a shared secret'"))
	})
}
