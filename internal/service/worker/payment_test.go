package worker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// fiveHours is the length of audio that only decoding reveals.
const fiveHours = 5 * 3600.0

// prober reports the same length for every file.
type prober float64

func (p prober) Probe(context.Context, string, string) (float64, error) { return float64(p), nil }

// decoder is an engine that decodes as engines must: it stops at MaxSeconds and
// calls Decoded before it continues.
type decoder struct {
	seconds  float64
	reckless bool // ignores the account's limits
	worked   *atomic.Int64
}

func (d decoder) ModelSet() string { return "test-models-1" }

func (d decoder) Run(_ context.Context, job worker.Job) (tasks.Outcome, error) {
	if _, err := os.Stat(job.Path); err != nil {
		return tasks.Outcome{}, err
	}
	if !d.reckless {
		if d.seconds > job.MaxSeconds {
			return tasks.Outcome{}, worker.ErrUnpaid
		}
		if err := job.Decoded(d.seconds); err != nil {
			return tasks.Outcome{}, err
		}
	}
	d.worked.Add(1)
	return tasks.Outcome{Tier: "standard", Seconds: d.seconds}, nil
}

// minuteSource is an HTTP client that serves audio.
var minuteSource = taskstest.DoerFunc(func(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: 2048, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 2048)))}, nil
})

// countingProber counts its calls.
type countingProber struct{ calls atomic.Int64 }

func (p *countingProber) Probe(context.Context, string, string) (float64, error) {
	p.calls.Add(1)
	return 60, nil
}

// TestKnownLengthIsNotProbedAgain counts the worker's probes of uploads that
// the service could probe, that it could not probe, and whose length was too
// long to store.
func TestKnownLengthIsNotProbedAgain(t *testing.T) {
	for seconds, want := range map[float64]int64{60: 0, 0: 1, spec.MaxAudioSeconds: 1} {
		f, p := taskstest.New(t, dbtest.SQLite(t, db.Options{})), &countingProber{}
		task := f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("audio"), seconds })
		stop := f.Start(1, worker.Config{Engine: taskstest.Quick, Prober: p})
		assert.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
		stop()
		assert.Equal(t, want, p.calls.Load(), "%g s", seconds)
	}
}

// TestPrepaidBalanceIsALimit submits 20 hours of audio with a balance of 0.2,
// in every way that leaves the length unknown at that time, to workers that
// learn it at different times. The short form has each way with one worker and
// each worker with one way.
func TestPrepaidBalanceIsALimit(t *testing.T) {
	ways := map[string]func(*tasks.Request){
		"URL":                 func(r *tasks.Request) { r.URL = "https://source.example/a.wav" },
		"batch":               func(r *tasks.Request) { r.URL, r.Batch = "https://source.example/a.wav", true },
		"unprobeable upload":  func(r *tasks.Request) { r.Seconds = 0 },
		"upload of a minute?": func(r *tasks.Request) { r.Seconds = 60 },
	}
	workers := map[string]struct {
		prober tasks.Prober
		engine decoder
	}{
		"length known":            {prober(fiveHours), decoder{seconds: fiveHours}},
		"length known too late":   {prober(fiveHours), decoder{seconds: fiveHours, reckless: true}},
		"header of a minute":      {prober(60), decoder{seconds: fiveHours}},
		"nothing known":           {nil, decoder{seconds: fiveHours}},
		"engine without a limit":  {nil, decoder{seconds: fiveHours, reckless: true}},
		"five minutes too long":   {prober(60), decoder{seconds: 20 * 60}},
		"minutes that are a lie":  {prober(60), decoder{seconds: 40 * 60}},
		"fits once for each task": {prober(60), decoder{seconds: 60}},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f, n := taskstest.New(t, d), 0
		f.StartFetcher(worker.FetcherConfig{HTTP: minuteSource})
		for way, change := range ways {
			for name, c := range workers {
				if testing.Short() && way != "URL" && name != "length known" {
					continue
				}
				t.Run(way+", "+name, func(t *testing.T) {
					var worked atomic.Int64
					c.engine.worked = &worked
					n++
					poor := f.NewAccount(fmt.Sprint("poor", n), billing.Unit/5)
					var ids []string
					for range 4 {
						ids = append(ids, f.Add(func(r *tasks.Request) {
							r.Audio, r.Seconds = f.Audio("audio"), 0
							change(r)
							if r.URL != "" {
								r.Audio = nil
							}
							r.Account, r.CallbackURL = poor, "https://receiver.example/"
						}).ID)
					}
					stop := f.Start(2, worker.Config{Engine: c.engine, Prober: c.prober})
					failed := 0
					for _, id := range ids {
						task := f.WaitFor(id)
						if task.Status == tasks.StatusDone {
							continue
						}
						failed++
						assert.Equal(t, tasks.StatusFailed, task.Status)
						assert.Regexp(t, "^insufficient_balance: .* nothing is charged$", *task.ErrorMessage)
						callbacks, err := f.Outbox().List(t.Context(), webhook.Filter{TaskID: id})
						require.NoError(t, err)
						assert.Len(t, callbacks, 1)
					}
					stop()
					assert.Zero(t, f.Count("SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND attempt <> CASE WHEN audio_url IS NULL THEN 1 ELSE 2 END", poor), "nothing is retried")
					v, err := f.Billing().View(t.Context(), poor)
					require.NoError(t, err)
					assert.GreaterOrEqual(t, v.Balance, billing.Money(0))
					assert.Zero(t, v.Held)
					if c.engine.seconds == fiveHours {
						assert.Equal(t, 4, failed)
						assert.Equal(t, billing.Unit/5, v.Balance, "nothing is charged")
						if !c.engine.reckless {
							assert.Zero(t, worked.Load(), "no task runs that is not paid for")
						}
					}
					if name == "fits once for each task" {
						assert.Zero(t, failed)
					}
					f.Exact()
				})
			}
		}
	})
}

// TestHoldIsRaisedToTheRealLength has a balance that pays for one of two long
// tasks.
func TestHoldIsRaisedToTheRealLength(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	account := f.NewAccount("one", 8100) // an hour is 0.8
	first, second := f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "https://source.example/a.wav" }), f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "https://source.example/a.wav" })
	one, two := f.Take(), f.Take()
	require.Equal(t, []string{first.ID, second.ID}, []string{one.ID, two.ID})
	means, err := f.Probed(t.Context(), one, 3480)
	require.NoError(t, err)
	assert.Equal(t, tasks.Affordable{Held: 3480, Most: 3540}, means)
	held, _, err := f.Billing().HoldLimit(t.Context(), first.ID)
	require.NoError(t, err)
	assert.Equal(t, billing.Money(7733), held)
	_, err = f.Probed(t.Context(), two, 3600)
	require.ErrorIs(t, err, billing.ErrInsufficientBalance)
	assert.True(t, spec.IsPermanent(err))
	assert.EqualError(t, err, "tasks: raise hold of "+second.ID+": insufficient_balance: 60 min of audio require 0.8, 0.0367 available; nothing is charged")
}
