package tasks_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// TestEqualSubmissionsMakeOneTask sends 50 equal requests with one key at the
// same time. It covers T12 of test/README.md.
func TestEqualSubmissionsMakeOneTask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now()
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		idem := tasks.Idempotency{Key: "order-7", BodyHash: "abc"}
		answers := make([]tasks.Task, 50)
		var wait sync.WaitGroup
		var mu sync.Mutex
		fresh := 0
		for i := range answers {
			wait.Go(func() {
				r := f.Request(func(r *tasks.Request) {
					r.Audio, r.Seconds = f.Audio("same"), 30
					r.Options = spec.EffectiveOptions{Hotwords: []string{"<a&b>"}}
				})
				task, replayed, err := f.Create(t.Context(), r, idem)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				answers[i] = task
				if !replayed {
					fresh++
				}
			})
		}
		wait.Wait()
		assert.Equal(t, 1, fresh)
		equal := 0
		for _, a := range answers {
			if reflect.DeepEqual(answers[0], a) {
				equal++
			}
		}
		assert.Equal(t, 50, equal, "%+v", answers[0])
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks"))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM holds"))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'queued'"))
		assert.Len(t, f.Files(), 1, "the audio of the replays is deleted")
		t.Logf("T12: 50 submissions, %d task, %d hold, %d equal answers", f.Count("SELECT COUNT(*) FROM tasks"), f.Count("SELECT COUNT(*) FROM holds"), equal)

		_, _, err := f.Create(t.Context(), f.Request(nil), tasks.Idempotency{Key: "order-7", BodyHash: "other"})
		require.ErrorIs(t, err, tasks.ErrIdempotencyConflict)
		assert.Len(t, f.Files(), 1, "the audio of the refused request is deleted")
		stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
		f.WaitFor(answers[0].ID)
		stop()
		again, replayed, err := f.Create(t.Context(), f.Request(nil), idem)
		require.NoError(t, err)
		assert.True(t, replayed)
		assert.Equal(t, answers[0], again, "the first answer, though the task is done now")

		other := f.NewAccount("other", billing.Unit)
		_, replayed, err = f.Create(t.Context(), f.Request(func(r *tasks.Request) { r.Account = other }), idem)
		require.NoError(t, err)
		assert.False(t, replayed, "another account's key")
		clock = clock.Add(25 * time.Hour)
		_, replayed, err = f.Create(t.Context(), f.Request(nil), idem)
		require.NoError(t, err)
		assert.False(t, replayed, "forgotten after 24 h")
		f.Exact()
	})
}

// TestSubmissionsCannotOverdraw makes 100 concurrent submissions with a balance
// for 10. It covers T13 of test/README.md.
func TestSubmissionsCannotOverdraw(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		poor := f.NewAccount("poor", 10*133+132) // (0.60 + 0.10 + 0.10) / 60 for a minute
		var wait sync.WaitGroup
		var mu sync.Mutex
		accepted, refused := 0, 0
		for range 100 {
			wait.Go(func() {
				_, _, err := f.Create(t.Context(), f.Request(func(r *tasks.Request) { r.Account = poor; r.URL = "https://source.example/a.wav" }), tasks.Idempotency{})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted++
				case errors.Is(err, billing.ErrInsufficientBalance):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wait.Wait()
		v, err := f.Billing().View(t.Context(), poor)
		require.NoError(t, err)
		assert.Equal(t, 10, accepted)
		assert.Equal(t, 90, refused)
		assert.Equal(t, billing.Money(132), v.Available)
		assert.Equal(t, 10, f.Count("SELECT COUNT(*) FROM tasks"))
		f.Exact()
		t.Logf("T13: %d of 100 accepted, available %s", accepted, v.Available)
	})
}

func TestConcurrencyLimit(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	two := 2
	require.NoError(t, accounts.New(f.Config.DB, nil, nil).SetLimits(t.Context(), f.Account, accounts.Overrides{Concurrency: &two}))
	first := f.Add(nil)
	f.Add(nil)
	_, _, err := f.Create(t.Context(), f.Request(nil), tasks.Idempotency{})
	require.ErrorIs(t, err, billing.ErrConcurrencyLimit)
	assert.Len(t, f.Files(), 2, "the audio of the refused request is deleted")
	f.Add(func(r *tasks.Request) { r.Batch = true })
	c, err := f.Next(t.Context(), "w", "m")
	require.NoError(t, err)
	require.Equal(t, first.ID, c.ID)
	require.NoError(t, f.Release(t.Context(), c, tasks.EndRecoverable, "x"))
	_, _, err = f.Create(t.Context(), f.Request(nil), tasks.Idempotency{})
	require.ErrorIs(t, err, billing.ErrConcurrencyLimit, "a task that waits for its retry still counts")
	require.NoError(t, f.Delete(t.Context(), f.Account, first.ID))
	f.Add(nil)
}

func TestBatchItemsAreIndependent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		poor := f.NewAccount("poor", 3*67) // a minute as a batch task costs 0.0067
		var requests []tasks.Request
		for i := range 6 {
			requests = append(requests, f.Request(func(r *tasks.Request) {
				r.Account, r.Batch, r.URL = poor, true, fmt.Sprint("https://source.example/", i)
			}))
		}
		requests[1].Refused = errors.New("address is not public")
		idem := tasks.Idempotency{Key: "b", BodyHash: "h"}
		items, replayed, err := f.CreateBatch(t.Context(), requests, idem)
		require.NoError(t, err)
		assert.False(t, replayed)
		var states []bool
		for _, item := range items {
			states = append(states, item.Task != nil)
			assert.Equal(t, item.Task == nil, item.Error != "")
		}
		assert.Equal(t, []bool{true, false, true, true, false, false}, states)
		assert.Equal(t, "address is not public", items[1].Error)
		again, replayed, err := f.CreateBatch(t.Context(), requests, idem)
		require.NoError(t, err)
		assert.True(t, replayed)
		assert.Equal(t, items, again)
		assert.Equal(t, 3, f.Count("SELECT COUNT(*) FROM tasks"))
		_, _, err = f.Create(t.Context(), f.Request(func(r *tasks.Request) { r.Account = poor }), idem)
		require.ErrorIs(t, err, tasks.ErrIdempotencyConflict, "the key belongs to a batch")
		v, err := f.Billing().View(t.Context(), poor)
		require.NoError(t, err)
		assert.Equal(t, 3, v.WaitingBatchTasks)
		assert.Zero(t, v.ActiveTasks)
	})
}

// TestRightsAreCheckedLast: if the key is revoked or the account suspended while
// a recording comes, there is no task, the recording is deleted, and no voice is
// stored.
func TestRightsAreCheckedLast(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		_, key, err := f.Accounts.CreateKey(t.Context(), f.Account, accounts.KeyOptions{})
		require.NoError(t, err)
		byKey := func(r *tasks.Request) { r.Key = key.ID }
		f.Add(byKey)
		require.NoError(t, f.Accounts.RevokeKey(t.Context(), f.Account, key.ID))
		_, _, err = f.Create(t.Context(), f.Request(byKey), tasks.Idempotency{})
		require.ErrorIs(t, err, accounts.ErrUnauthorized)
		require.NoError(t, f.Accounts.Suspend(t.Context(), f.Account))
		_, _, err = f.Create(t.Context(), f.Request(nil), tasks.Idempotency{})
		require.ErrorIs(t, err, accounts.ErrSuspended)
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, voices.Voice{Name: "Ana", Model: strings.Repeat("01", 32), Consent: "yes", Vectors: [][]float32{{0.6, 0.8}}})
		require.ErrorIs(t, err, accounts.ErrSuspended)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks"))
		assert.Len(t, f.Files(), 1)
		f.Exact()
	})
}

func TestIncompleteRequestsAreRefused(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	for name, change := range map[string]func(*tasks.Request){
		"neither": func(r *tasks.Request) { r.Audio, r.URL = nil, "" },
		"both":    func(r *tasks.Request) { r.URL = "https://x.example" },
		"length":  func(r *tasks.Request) { r.Seconds = -1 },
	} {
		r := f.Request(nil)
		change(&r)
		_, _, err := f.Create(t.Context(), r, tasks.Idempotency{})
		require.Error(t, err, name)
	}
	assert.Zero(t, f.Count("SELECT COUNT(*) FROM tasks"))
}

// TestHoldTiers checks the tier that a hold is priced for: the most expensive
// tier that may run on the models that workers have reported. While no worker
// has reported, any tier that the options allow may run.
func TestHoldTiers(t *testing.T) {
	const standard, lite = billing.Money(100), billing.Money(33) // 0.60 / 60 and 0.20 / 60
	whisper := spec.Available{Standard: true}
	both := spec.Available{Standard: true, Optimized: spec.OptimizedLanguages()}
	english := spec.Available{Standard: true, StandardLanguages: []string{"en"}, Optimized: []string{"en"}}
	const off = `"enable_diarize":false,"enable_audio_events":false`
	for _, tt := range []struct {
		options string
		want    [4]billing.Money // without a worker, with a worker of the standard tier, of both tiers, with both workers
	}{
		{`{` + off + `}`, [4]billing.Money{standard, standard, standard, standard}},
		{`{` + off + `,"optimize":null}`, [4]billing.Money{standard, standard, standard, standard}},
		{`{` + off + `,"optimize":true}`, [4]billing.Money{standard, standard, standard, standard}}, // the language may not be supported
		{`{` + off + `,"optimize":false,"asr_language":"en"}`, [4]billing.Money{standard, standard, standard, standard}},
		{`{` + off + `,"asr_language":"en"}`, [4]billing.Money{standard, standard, lite, standard}},
		{`{` + off + `,"optimize":true,"asr_language":"zh"}`, [4]billing.Money{standard, standard, lite, standard}},
		{`{` + off + `,"optimize_zh":true,"asr_language":"en"}`, [4]billing.Money{standard, standard, standard, standard}},
		{`{` + off + `,"optimize_zh":true,"asr_language":"zh"}`, [4]billing.Money{standard, standard, lite, standard}},
		{`{` + off + `,"optimize_zh":false,"asr_language":"zh"}`, [4]billing.Money{standard, standard, standard, standard}},
		{`{` + off + `,"asr_language":"de"}`, [4]billing.Money{standard, standard, standard, standard}},
		{`{"enable_asr":false,"enable_diarize":false}`, [4]billing.Money{117, 117, 117, 117}},
	} {
		for i, sets := range [][]spec.Available{nil, {whisper}, {both}, {both, whisper}} {
			assert.Equal(t, tt.want[i], holdWith(t, tt.options, sets...), "%s with %+v", tt.options, sets)
		}
	}
	assert.Equal(t, lite, holdWith(t, `{`+off+`}`, english), "only English can be detected")
}

// TestLaterHoldsOfANamedModel: the prices of the actual length, of a retry and
// of a client that goes away follow the named model's tier, like the first hold.
func TestLaterHoldsOfANamedModel(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	set := spec.Available{Standard: true, Optimized: []string{"en"}, Models: []spec.NamedModel{{Name: "german", Tier: spec.TierOptimized, Languages: []string{"de"}}}}
	leave, err := f.Queue().Enter(t.Context(), queue.Member{ID: "worker", Kind: queue.Worker, Available: set}, time.Hour, nil)
	require.NoError(t, err)
	defer leave()
	task := f.Add(func(r *tasks.Request) {
		r.Options = spec.EffectiveOptions{EnableDiarize: new(false), EnableAudioEvents: new(false), Optimize: new(true), ASRLanguage: new("de")}
		r.Extras.Model, r.URL, r.Seconds = "german", "https://source.example/a", 30
	})
	held := func() billing.Money {
		amount, _, err := f.Billing().HoldLimit(t.Context(), task.ID)
		require.NoError(t, err)
		return amount
	}
	assert.EqualValues(t, 33, held())
	claim := f.Take()
	paid, err := f.Probed(t.Context(), claim, 3600)
	require.NoError(t, err)
	assert.EqualValues(t, 2000, held())
	assert.EqualValues(t, 3600, paid.Held)
	f.Exec("UPDATE tasks SET failures = 3 WHERE id = $1", task.ID)
	require.NoError(t, f.Release(t.Context(), claim, tasks.EndRecoverable, "x"))
	_, err = f.Retry(t.Context(), task.ID)
	require.NoError(t, err)
	assert.EqualValues(t, 33, held())
	f.Exec("INSERT INTO live_segments (task_id, attempt, first, segments) VALUES ($1, 1, 0, '[{\"end\": 12.25}]')", task.ID)
	_, err = f.Leave(t.Context(), f.Account, task.ID)
	require.NoError(t, err)
	bill, err := f.Billing().Bill(t.Context(), f.Account, task.ID)
	require.NoError(t, err)
	assert.EqualValues(t, 33, bill.Amount)
}

// holdWith returns the hold of a task with options while workers with the given
// sets of models run.
func holdWith(t *testing.T, options string, sets ...spec.Available) billing.Money {
	t.Helper()
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	for i, set := range sets {
		m := queue.Member{ID: fmt.Sprint("worker ", i), Kind: queue.Worker, Available: set}
		leave, err := f.Queue().Enter(t.Context(), m, time.Hour, nil)
		require.NoError(t, err)
		defer leave()
	}
	known, err := f.Queue().Available(t.Context(), f.Config.DB.Read())
	require.NoError(t, err)
	require.ElementsMatch(t, sets, known)
	task := f.Add(func(r *tasks.Request) {
		r.Options = spec.EffectiveOptions{}
		require.NoError(t, json.Unmarshal([]byte(options), &r.Options))
	})
	held, _, err := f.Billing().HoldLimit(t.Context(), task.ID)
	require.NoError(t, err)
	require.Positive(t, held)
	return held
}
