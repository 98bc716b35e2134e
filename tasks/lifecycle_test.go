package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTaskFromCreationToResult(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		task := f.create(func(r *Request) { r.Audio, r.Seconds = f.audio("hello"), 61.5; r.AllowTraining = true })
		assert.Equal(t, StatusProcessing, task.Status)
		assert.Equal(t, SourceBase64, task.AudioSourceType)
		assert.EqualValues(t, 5, *task.AudioSize)
		assert.Equal(t, "5d41402abc4b2a76b9719d911017c592", *task.AudioMD5)
		assert.JSONEq(t, allOptions, string(task.Options))
		assert.Equal(t, allOptions, string(f.get(task.ID).Options), "byte for byte")
		view, err := f.billing.View(t.Context(), f.account)
		require.NoError(t, err)
		// (0.60 + 0.10 + 0.10) / 60 × 2 minutes, rounded once
		assert.Equal(t, billing.Money(267), view.HeldAmount)
		assert.Equal(t, 1, view.ActiveTasks)

		_, err = f.Result(t.Context(), f.account, task.ID)
		require.ErrorIs(t, err, ErrNotDone)
		require.ErrorIs(t, f.Delete(t.Context(), f.account, task.ID), ErrProcessing)

		stop := f.start(1, WorkerConfig{Engine: quick})
		done := f.wait(task.ID)
		stop()
		assert.Equal(t, StatusDone, done.Status)
		assert.Nil(t, done.ErrorMessage)
		assert.True(t, done.AllowTraining)
		require.NotNil(t, done.FinishedAt)
		m := f.result(task.ID)
		assert.Equal(t, task.ID, m["task_id"])
		assert.Equal(t, 61.5, m["audio_duration"])
		assert.Equal(t, "5d41402abc4b2a76b9719d911017c592", m["audio_md5"], "ours, not the engine's")
		assert.Equal(t, "en", m["language"])
		assert.Equal(t, "hello", m["segments"].([]any)[0].(map[string]any)["text"])
		bill := m["billing"].(map[string]any)
		assert.Equal(t, "zh_lite", bill["mode"])
		assert.EqualValues(t, 2, bill["billable_minutes"])
		assert.Equal(t, 0.0133, bill["amount"]) // (0.20 + 0.10 + 0.10) / 60 × 2
		assert.Equal(t, 999.9867, bill["balance"])
		view, err = f.billing.View(t.Context(), f.account)
		require.NoError(t, err)
		assert.Zero(t, view.HeldAmount)
		f.exact()
		assert.Equal(t, []string{"results/" + task.ID + "-1.json.zst"}, f.files(), "the audio is gone")

		require.NoError(t, f.Delete(t.Context(), f.account, task.ID))
		assert.Empty(t, f.files())
		_, err = f.Get(t.Context(), f.account, task.ID)
		require.ErrorIs(t, err, ErrNotFound)
		list, total, err := f.billing.Transactions(t.Context(), f.account, 1, 20)
		require.NoError(t, err)
		assert.Equal(t, 2, total, "ledger entries stay")
		assert.Equal(t, task.ID, list[0].TaskID)
	})
}

func TestKeepAudio(t *testing.T) {
	clock := time.Now()
	f := newFixture(t, dbtest.SQLite(t, db.Options{}), func(c *Config) { c.KeepAudio = time.Hour; c.Clock = func() time.Time { return clock } })
	task := f.create(nil)
	stop := f.start(1, WorkerConfig{Engine: quick})
	f.wait(task.ID)
	stop()
	m := NewMaintainer(f.Service, MaintainerConfig{OrphanAge: -time.Hour})
	require.NoError(t, m.Cleanup(t.Context()))
	assert.Len(t, f.files(), 2, "audio and result")
	clock = clock.Add(2 * time.Hour)
	require.NoError(t, m.Cleanup(t.Context()))
	assert.Len(t, f.files(), 1)
	f.exact()
}

func TestListAndOwners(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		other := f.newAccount("other", billing.Unit)
		var ids []string
		for range 5 {
			ids = append([]string{f.create(nil).ID}, ids...)
		}
		mine := f.create(func(r *Request) { r.Account = other })
		list, total, err := f.List(t.Context(), f.account, Filter{Page: 1, Size: 3})
		require.NoError(t, err)
		assert.Equal(t, 5, total)
		next, _, err := f.List(t.Context(), f.account, Filter{Page: 2, Size: 3})
		require.NoError(t, err)
		var got []string
		for _, task := range append(list, next...) {
			got = append(got, task.ID)
		}
		assert.Equal(t, ids, got, "newest first")
		none, total, err := f.List(t.Context(), f.account, Filter{Page: 1 << 40, Size: 100})
		require.NoError(t, err)
		assert.Equal(t, 5, total)
		assert.Empty(t, none)
		_, total, err = f.List(t.Context(), f.account, Filter{Status: StatusDone, Page: 1, Size: 3})
		require.NoError(t, err)
		assert.Zero(t, total)

		_, err = f.Get(t.Context(), f.account, mine.ID)
		require.ErrorIs(t, err, ErrForbidden)
		_, err = f.Result(t.Context(), f.account, mine.ID)
		require.ErrorIs(t, err, ErrForbidden)
		require.ErrorIs(t, f.Delete(t.Context(), f.account, mine.ID), ErrForbidden)
		_, err = f.Get(t.Context(), f.account, "nonsense")
		require.ErrorIs(t, err, ErrNotFound)
	})
}

// TestRetriesUntilAbandoned follows one task through four attempts that fail, by a clock of its own.
func TestRetriesUntilAbandoned(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now().Truncate(time.Second)
		f := newFixture(t, d, func(c *Config) { c.Clock = func() time.Time { return clock }; c.Random = func() float64 { return 1 } })
		task := f.create(func(r *Request) { r.CallbackURL = "https://receiver.example/hook" })
		delays := []time.Duration{12 * time.Second, 72 * time.Second, 6 * time.Minute} // + 20 %
		for n := range 4 {
			c, err := f.next(t.Context(), "w", "m")
			require.NoError(t, err)
			require.NotNil(t, c, "attempt %d", n+1)
			assert.Equal(t, StatusProcessing, f.get(task.ID).Status)
			require.NoError(t, f.release(t.Context(), c, endRecoverable, "no network"))
			require.ErrorIs(t, f.release(t.Context(), c, endRecoverable, "again"), ErrSuperseded)
			got := f.get(task.ID)
			assert.Equal(t, "no network", *got.ErrorMessage)
			if n == 3 {
				assert.Equal(t, StatusAbandoned, got.Status)
				assert.NotNil(t, got.FinishedAt)
				break
			}
			assert.Equal(t, StatusFailed, got.Status)
			assert.Nil(t, got.FinishedAt)
			assert.Zero(t, f.count("SELECT COUNT(*) FROM callbacks"), "no callback for what is retried")
			clock = clock.Add(delays[n] - time.Millisecond)
			early, err := f.next(t.Context(), "w", "m")
			require.NoError(t, err)
			assert.Nil(t, early, "not before its time")
			clock = clock.Add(time.Millisecond)
		}
		none, err := f.next(t.Context(), "w", "m")
		require.NoError(t, err)
		assert.Nil(t, none)
		callbacks, err := f.Callbacks(t.Context(), CallbackFilter{TaskID: task.ID})
		require.NoError(t, err)
		require.Len(t, callbacks, 1)
		f.exact()
		balance, err := f.billing.Balance(t.Context(), f.account)
		require.NoError(t, err)
		assert.Equal(t, 1000*billing.Unit, balance)
	})
}

func TestPermanentErrorIsFinal(t *testing.T) {
	f := newFixture(t, dbtest.SQLite(t, db.Options{}))
	task := f.create(nil)
	runs := 0
	stop := f.start(1, WorkerConfig{Engine: engineFunc(func(_ context.Context, job Job) (Outcome, error) {
		runs++
		return Outcome{}, Permanent(errors.New(job.Path + " is not audio"))
	})})
	done := f.wait(task.ID)
	stop()
	assert.Equal(t, StatusFailed, done.Status)
	assert.Equal(t, "speech.wav is not audio", *done.ErrorMessage, "no path of the service")
	assert.Equal(t, 1, runs)
	f.exact()
	assert.Empty(t, f.files())
}

type proberFunc func(ctx context.Context, path, filename string) (float64, error)

func (f proberFunc) Probe(ctx context.Context, path, filename string) (float64, error) {
	return f(ctx, path, filename)
}

// TestT34BilledByDecodedSeconds lets a container lie about its length in both directions.
func TestT34BilledByDecodedSeconds(t *testing.T) {
	for _, c := range []struct {
		name              string
		declared, decoded float64
		status            Status
		amount            billing.Money
	}{
		{"declares 1 s, holds 2 h", 1, 7200, StatusDone, 4000 + 2000 + 2000},
		{"declares 2 h, holds 1 s", 7200, 1, StatusDone, 33 + 17 + 17},
		{"declares 1 s, holds 6 h", 1, 6 * 3600, StatusFailed, 0},
		{"declares 6 h", 6 * 3600, 1, StatusFailed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, dbtest.SQLite(t, db.Options{}))
			task := f.create(func(r *Request) { r.Audio = f.audio("x") })
			stop := f.start(1, WorkerConfig{
				Prober: proberFunc(func(context.Context, string, string) (float64, error) { return c.declared, nil }),
				Engine: engineFunc(func(_ context.Context, job Job) (Outcome, error) {
					held, ok, err := f.billing.Held(context.Background(), job.TaskID)
					require.NoError(t, err)
					require.True(t, ok)
					if c.declared > 60 {
						assert.Equal(t, billing.Money(16000), held, "raised to the declared length at the dearer tier")
					}
					return Outcome{Result: json.RawMessage(`{}`), Tier: "zh_lite", Seconds: c.decoded}, nil
				})})
			done := f.wait(task.ID)
			stop()
			assert.Equal(t, c.status, done.Status)
			balance, err := f.billing.Balance(t.Context(), f.account)
			require.NoError(t, err)
			assert.Equal(t, 1000*billing.Unit-c.amount, balance)
			f.exact()
			t.Logf("T34: %s: %s, charged %s", c.name, done.Status, 1000*billing.Unit-balance)
		})
	}
}
