package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// errBroken is the error of a faulty driver: a broken connection.
var errBroken = fmt.Errorf("injected: %w", io.ErrUnexpectedEOF)

// breaker chooses which calls of the database fail. "before" fails without any
// effect; "after", for commits only, fails although the commit succeeded.
type breaker struct {
	mu  sync.Mutex
	ask func(op string) (fail, after bool)
}

func (b *breaker) verdict(op string) (fail, after bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ask == nil {
		return false, false
	}
	return b.ask(op)
}

func (b *breaker) set(ask func(op string) (fail, after bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ask = ask
}

// call implements the callback of dbtest.Faulty.
func (b *breaker) call(c dbtest.Call) (after bool, err error) {
	if fail, after := b.verdict(c.Op); fail {
		return after, errBroken
	}
	return false, nil
}

// brittle returns a fixture whose database and file store fail when b chooses.
func brittle(t testing.TB, options ...taskstest.Option) (*taskstest.Fixture, *breaker) {
	b := &breaker{}
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{Wrap: dbtest.Faulty(b.call), MaxConns: 4}), options...)
	f.Config.Blobs.Inject(func(op, key string) error {
		if fail, _ := b.verdict("blob " + op); fail {
			return errBroken
		}
		return nil
	})
	return f, b
}

// oneTask takes a task from its creation to its delivered callback, as client,
// worker and notifier, which retry after failures. It returns the number of
// deliveries.
func oneTask(t testing.TB, f *taskstest.Fixture) (deliveries int) {
	ctx := context.Background()
	again := func(what string, step func() error) {
		for range 20 {
			if err := step(); err == nil {
				return
			} else if !tasks.Outage(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
				require.NoError(t, err, what)
			}
			time.Sleep(time.Second)
		}
		t.Fatal(what, "does not work")
	}
	var task tasks.Task
	again("create", func() error {
		w, err := f.NewAudio(ctx, "speech.wav")
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write([]byte("audio")); err != nil {
			return err
		}
		info, err := w.Commit()
		if err != nil {
			return err
		}
		task, _, err = f.Create(ctx, f.Request(func(r *tasks.Request) { r.Audio = &info; r.CallbackURL = "https://receiver.example/x" }), tasks.Idempotency{Key: "k", BodyHash: "h"})
		return err
	})
	w, err := worker.New(f.Service.Runs, worker.Config{Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
		if err := job.Checkpoints.Save(ctx, "vad", []byte("work")); err != nil {
			return tasks.Outcome{}, err
		}
		return taskstest.Quick(ctx, job)
	}), ID: "w"})
	require.NoError(t, err)
	again("work", func() error {
		for range 50 {
			c, err := f.Next(ctx, "w", "m")
			if err != nil {
				// The watch finds a claim whose commit was not confirmed.
				_, _ = f.Reap(ctx, "w", tasks.EndInterrupted, "lost")
				return err
			}
			if c != nil {
				run, cancel := context.WithCancelCause(ctx)
				err := w.Work(ctx, run, cancel, c)
				cancel(nil)
				if err != nil {
					return err
				}
			}
			now, err := f.Get(ctx, f.Account, task.ID)
			if err != nil {
				return err
			}
			if now.Final() {
				return nil
			}
			time.Sleep(time.Minute)
		}
		return errors.New("the task does not end")
	})
	again("deliver", func() error {
		for range 10 {
			d, err := f.Outbox().Next(ctx, "n", webhook.Busy{})
			if err != nil {
				_, _ = f.Reap(ctx, "n", tasks.EndInterrupted, "lost")
				return err
			}
			if d != nil {
				deliveries++
				if err := f.Outbox().Note(ctx, d, nil); err != nil {
					_, _ = f.Reap(ctx, "n", tasks.EndInterrupted, "lost")
					return err
				}
			}
			var open int
			if err := f.Config.DB.Read().QueryRow("SELECT COUNT(*) FROM callbacks WHERE phase <> 'delivered'").Scan(&open); err != nil {
				return err
			}
			if open == 0 {
				return nil
			}
		}
		return errors.New("the callback does not arrive")
	})
	return deliveries
}

// TestAnyFailedOperationIsSurvived makes the n-th operation of database and
// file store fail, for n = 1 … N, each commit in both ways. It covers T25 of
// test/README.md.
func TestAnyFailedOperationIsSurvived(t *testing.T) {
	points, twice := 0, 0
	for n := 1; ; n += faultStride {
		fired := false
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f, b := brittle(t)
				count, hit := 0, false
				b.set(func(op string) (bool, bool) {
					count++
					if count != n || (after && op != "commit") {
						return false, false
					}
					hit = true
					return true, after
				})
				deliveries := oneTask(t, f)
				b.set(nil)
				if count >= n {
					fired = true
				}
				if !hit {
					return
				}
				points++
				if deliveries > 1 {
					twice++
				}
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks"), "n = %d: one task for one key", n)
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'"), "n = %d", n)
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"), "n = %d", n)
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks"), "n = %d", n)
				f.Exact()
				f.Tidy()
				require.Empty(t, f.Orphans(), "n = %d", n)
				require.Len(t, f.Files(), 1, "n = %d: the result", n)
			})
		}
		if !fired {
			break
		}
	}
	assert.Greater(t, points, 60/faultStride)
	t.Logf("T25: %d points of failure in a task's life, each survived: one task, one charge, one result; %d delivered twice", points, twice)
}
