package tasks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

func TestTaskFromCreationToResult(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("hello"), 61.5; r.AllowTraining = true })
		assert.Equal(t, tasks.StatusProcessing, task.Status)
		assert.Equal(t, tasks.SourceBase64, task.AudioSourceType)
		assert.EqualValues(t, 5, *task.AudioSize)
		assert.Equal(t, "5d41402abc4b2a76b9719d911017c592", *task.AudioMD5)
		assert.Equal(t, taskstest.AllOptions(), task.Options)
		assert.Equal(t, taskstest.AllOptions(), f.Row(task.ID).Options)
		view, err := f.Billing().View(t.Context(), f.Account)
		require.NoError(t, err)
		// (0.60 + 0.10 + 0.10) / 60 × 2 minutes, rounded once
		assert.Equal(t, billing.Money(267), view.Held)
		assert.Equal(t, 1, view.ActiveTasks)

		_, err = f.Result(t.Context(), f.Account, task.ID)
		require.ErrorIs(t, err, tasks.ErrNotDone)
		require.ErrorIs(t, f.Delete(t.Context(), f.Account, task.ID), tasks.ErrProcessing)

		stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
		done := f.WaitFor(task.ID)
		stop()
		assert.Equal(t, tasks.StatusDone, done.Status)
		assert.Nil(t, done.ErrorMessage)
		assert.True(t, done.AllowTraining)
		require.NotNil(t, done.FinishedAt)
		r, bill := f.ReadResult(task.ID)
		assert.Equal(t, 61.5, r.AudioDuration)
		assert.Equal(t, "5d41402abc4b2a76b9719d911017c592", r.AudioMD5, "the task's own, not the engine's")
		assert.Equal(t, "en", r.Language)
		assert.Equal(t, "hello", r.Segments[0].Text)
		assert.Equal(t, spec.TierOptimized, bill.Mode)
		assert.EqualValues(t, 2, bill.BillableMinutes)
		assert.Equal(t, "0.0133", bill.Amount.Number()) // (0.20 + 0.10 + 0.10) / 60 × 2
		assert.Equal(t, "999.9867", bill.Balance.Number())
		view, err = f.Billing().View(t.Context(), f.Account)
		require.NoError(t, err)
		assert.Zero(t, view.Held)
		f.Exact()
		assert.Equal(t, []string{"results/" + task.ID + "-1.json.zst"}, f.Files(), "the audio is gone")

		require.NoError(t, f.Delete(t.Context(), f.Account, task.ID))
		assert.Empty(t, f.Files())
		_, err = f.Get(t.Context(), f.Account, task.ID)
		require.ErrorIs(t, err, tasks.ErrNotFound)
		list, total, err := f.Billing().Transactions(t.Context(), f.Account, billing.Page{Number: 1, Size: 20})
		require.NoError(t, err)
		assert.Equal(t, 2, total, "ledger entries stay")
		assert.Equal(t, task.ID, list[0].TaskID)
	})
}

func TestAudioIsKeptForATime(t *testing.T) {
	clock := time.Now()
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.KeepAudio = time.Hour; c.Clock = func() time.Time { return clock } })
	task := f.Add(nil)
	stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
	f.WaitFor(task.ID)
	stop()
	f.Tidy()
	assert.Len(t, f.Files(), 2, "audio and result")
	clock = clock.Add(2 * time.Hour)
	f.Tidy()
	assert.Len(t, f.Files(), 1)
	f.Exact()
}

func TestListAndOwners(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		other := f.NewAccount("other", billing.Unit)
		var ids []string
		for range 5 {
			ids = append([]string{f.Add(nil).ID}, ids...)
		}
		mine := f.Add(func(r *tasks.Request) { r.Account = other })
		list, total, err := f.List(t.Context(), f.Account, tasks.Filter{Page: billing.Page{Number: 1, Size: 3}})
		require.NoError(t, err)
		assert.Equal(t, 5, total)
		next, _, err := f.List(t.Context(), f.Account, tasks.Filter{Page: billing.Page{Number: 2, Size: 3}})
		require.NoError(t, err)
		var got []string
		for _, task := range append(list, next...) {
			got = append(got, task.ID)
		}
		assert.Equal(t, ids, got, "newest first")
		none, total, err := f.List(t.Context(), f.Account, tasks.Filter{Page: billing.Page{Number: 1 << 40, Size: 100}})
		require.NoError(t, err)
		assert.Equal(t, 5, total)
		assert.Empty(t, none)
		_, total, err = f.List(t.Context(), f.Account, tasks.Filter{Status: tasks.StatusDone, Page: billing.Page{Number: 1, Size: 3}})
		require.NoError(t, err)
		assert.Zero(t, total)

		_, err = f.Get(t.Context(), f.Account, mine.ID)
		require.ErrorIs(t, err, tasks.ErrForbidden)
		_, err = f.Result(t.Context(), f.Account, mine.ID)
		require.ErrorIs(t, err, tasks.ErrForbidden)
		require.ErrorIs(t, f.Delete(t.Context(), f.Account, mine.ID), tasks.ErrForbidden)
		_, err = f.Get(t.Context(), f.Account, "nonsense")
		require.ErrorIs(t, err, tasks.ErrNotFound)
	})
}

// TestRetriesUntilAbandoned follows one task through four failing attempts,
// with a simulated clock.
func TestRetriesUntilAbandoned(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now().Truncate(time.Second)
		f := taskstest.New(t, d, func(c *tasks.Config) {
			c.Clock = func() time.Time {
				clock = clock.Add(time.Microsecond) // no two readings are equal
				return clock
			}
			c.Random = func() float64 { return 1 }
		})
		task := f.Add(func(r *tasks.Request) { r.CallbackURL = "https://receiver.example/hook" })
		delays := []time.Duration{12 * time.Second, 72 * time.Second, 6 * time.Minute} // + 20 %
		for n := range 4 {
			c, err := f.Next(t.Context(), "w", "m")
			require.NoError(t, err)
			require.NotNil(t, c, "attempt %d", n+1)
			assert.Equal(t, tasks.StatusProcessing, f.Row(task.ID).Status)
			require.NoError(t, f.Release(t.Context(), c, tasks.EndRecoverable, "no network"))
			require.ErrorIs(t, f.Release(t.Context(), c, tasks.EndRecoverable, "again"), queue.ErrSuperseded)
			got := f.Row(task.ID)
			assert.Equal(t, "no network", *got.ErrorMessage)
			if n == 3 {
				assert.Equal(t, tasks.StatusAbandoned, got.Status)
				assert.NotNil(t, got.FinishedAt)
				break
			}
			assert.Equal(t, tasks.StatusFailed, got.Status)
			assert.Nil(t, got.FinishedAt)
			assert.EqualValues(t, delays[n].Microseconds(), f.Count("SELECT run_at - updated_at FROM tasks"), "from one reading of the clock")
			assert.Zero(t, f.Count("SELECT COUNT(*) FROM callbacks"), "no callback for a task that will be retried")
			clock = clock.Add(delays[n] - time.Millisecond)
			early, err := f.Next(t.Context(), "w", "m")
			require.NoError(t, err)
			assert.Nil(t, early, "not before its time")
			clock = clock.Add(time.Millisecond)
		}
		none, err := f.Next(t.Context(), "w", "m")
		require.NoError(t, err)
		assert.Nil(t, none)
		callbacks, err := f.Outbox().List(t.Context(), webhook.Filter{TaskID: task.ID})
		require.NoError(t, err)
		require.Len(t, callbacks, 1)
		f.Exact()
		balance, err := f.Billing().Balance(t.Context(), f.Account)
		require.NoError(t, err)
		assert.Equal(t, 1000*billing.Unit, balance)
	})
}

// TestEarlierAttemptChangesNothing takes a running task from a dead worker and
// gives it to another worker: later reports of the first worker have no effect.
func TestEarlierAttemptChangesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(nil)
		early, err := f.Next(t.Context(), "dead", "m")
		require.NoError(t, err)
		_, err = f.Reap(t.Context(), "dead", tasks.EndInterrupted, "silent")
		require.NoError(t, err)
		current, err := f.Next(t.Context(), "alive", "m")
		require.NoError(t, err)
		require.NotNil(t, current)
		before := f.Row(task.ID)
		require.ErrorIs(t, f.Complete(t.Context(), early, tasks.Outcome{Seconds: 1}), queue.ErrSuperseded)
		require.ErrorIs(t, f.Release(t.Context(), early, tasks.EndPermanent, "late"), queue.ErrSuperseded)
		assert.Equal(t, before, f.Row(task.ID))
		require.NoError(t, f.Complete(t.Context(), current, tasks.Outcome{Seconds: 1}))
		assert.Equal(t, tasks.StatusDone, f.Row(task.ID).Status)
		f.Exact()
	})
}

func TestPermanentErrorIsFinal(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	runs := 0
	stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(_ context.Context, job worker.Job) (tasks.Outcome, error) {
		runs++
		return tasks.Outcome{}, spec.Permanent(errors.New(job.Path + " is not audio"))
	})})
	done := f.WaitFor(task.ID)
	stop()
	assert.Equal(t, tasks.StatusFailed, done.Status)
	assert.Equal(t, "speech.wav is not audio", *done.ErrorMessage, "no path of the service")
	assert.Equal(t, 1, runs)
	f.Exact()
	assert.Empty(t, f.Files())
}

// TestErrorMessages: customers learn the fault of their recording and the limit
// that it exceeded. The details of the service's own failures, such as
// paths, are only in the log.
func TestErrorMessages(t *testing.T) {
	const ours = "/srv/models/a.onnx"
	fine := proberFunc(func(context.Context, string, string) (float64, error) { return 1, nil })
	broken := proberFunc(func(context.Context, string, string) (float64, error) { return 0, errors.New(ours) })
	for name, c := range map[string]struct {
		prober tasks.Prober
		run    func(job worker.Job) error
		want   string
	}{
		"recording": {fine, func(job worker.Job) error {
			return fmt.Errorf("%q: %w", job.Path, spec.Permanent(errors.New("no audio in the file")))
		}, `"speech.wav": no audio in the file`},
		"limit":        {fine, func(job worker.Job) error { return fmt.Errorf("%q: %w", job.Path, spec.ErrSlow) }, `"speech.wav": decoding took too long`},
		"model's file": {fine, func(worker.Job) error { return &fs.PathError{Op: "open", Path: ours, Err: fs.ErrNotExist} }, "internal error"},
		"panic":        {fine, func(worker.Job) error { panic(ours) }, "internal error"},
		"probe":        {broken, func(worker.Job) error { return nil }, "internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) {
				c.RetryDelays, c.Logger = []time.Duration{}, slog.New(slog.NewTextHandler(&log, nil))
			})
			task := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("x") })
			stop := f.Start(1, worker.Config{Prober: c.prober, Engine: taskstest.EngineFunc(func(_ context.Context, job worker.Job) (tasks.Outcome, error) {
				return tasks.Outcome{Seconds: 1}, c.run(job)
			})})
			assert.Equal(t, c.want, *f.WaitFor(task.ID).ErrorMessage)
			stop()
			if c.want == "internal error" {
				assert.Contains(t, log.String(), ours)
			}
		})
	}
}

type proberFunc func(ctx context.Context, path, filename string) (float64, error)

func (f proberFunc) Probe(ctx context.Context, path, filename string) (float64, error) {
	return f(ctx, path, filename)
}

// TestDecodedSecondsAreBilled uses containers that state a length that is too
// short or too long. It covers T34 of test/README.md.
func TestDecodedSecondsAreBilled(t *testing.T) {
	for _, c := range []struct {
		name              string
		declared, decoded float64
		status            tasks.Status
		amount            billing.Money
	}{
		{"declares 1 s, holds 2 h", 1, 7200, tasks.StatusDone, 4000 + 2000 + 2000},
		{"declares 2 h, holds 1 s", 7200, 1, tasks.StatusDone, 33 + 17 + 17},
		{"declares 1 s, holds 6 h", 1, 6 * 3600, tasks.StatusFailed, 0},
		{"declares 6 h", 6 * 3600, 1, tasks.StatusFailed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
			task := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("x") })
			stop := f.Start(1, worker.Config{
				Prober: proberFunc(func(context.Context, string, string) (float64, error) { return c.declared, nil }),
				Engine: taskstest.EngineFunc(func(_ context.Context, job worker.Job) (tasks.Outcome, error) {
					held, _, err := f.Billing().HoldLimit(context.Background(), job.TaskID)
					require.NoError(t, err)
					require.Positive(t, held)
					if c.declared > 60 {
						assert.Equal(t, billing.Money(16000), held, "raised to the declared length at the more expensive tier")
					}
					return tasks.Outcome{Tier: "zh_lite", Seconds: c.decoded}, nil
				}),
			})
			done := f.WaitFor(task.ID)
			stop()
			assert.Equal(t, c.status, done.Status)
			balance, err := f.Billing().Balance(t.Context(), f.Account)
			require.NoError(t, err)
			assert.Equal(t, 1000*billing.Unit-c.amount, balance)
			f.Exact()
			t.Logf("T34: %s: %s, charged %s", c.name, done.Status, 1000*billing.Unit-balance)
		})
	}
}

// TestDropAudioSparesReferencedFiles: a worker whose claim is over drops its
// download, unless the row refers to it already (the commit succeeded but was
// not confirmed).
func TestDropAudioSparesReferencedFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := f.Add(func(r *tasks.Request) { r.URL = "https://source.example/a.wav" })
		noted, other := f.Audio("noted"), f.Audio("not noted")
		c, err := f.NextFetch(t.Context(), "fetcher", queue.Busy{Ahead: 1})
		require.NoError(t, err)
		require.NoError(t, f.Fetched(t.Context(), c, *noted, 0))
		f.DropAudio(t.Context(), noted.Key)
		f.DropAudio(t.Context(), other.Key)
		assert.Equal(t, []string{noted.Key}, f.Files(), "task %s", task.ID)
		f.Exact()
	})
}
