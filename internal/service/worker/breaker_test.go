package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestFullDiskAbandonsNothing runs a worker with a full disk and a healthy
// worker: no attempt is counted, the worker stops claiming, and it continues
// when there is room.
func TestFullDiskAbandonsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a tmpfs needs privileges: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	filler := filepath.Join(dir, "filler")
	require.Error(t, os.WriteFile(filler, make([]byte, 5<<20), 0o600), "the disk is full")
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	var tried atomic.Int64
	seen := &troubles{}
	full := worker.Config{TempDir: dir, Outage: seen.note, Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
		tried.Add(1)
		scratch := filepath.Join(dir, "scratch")
		defer os.Remove(scratch)
		if err := os.WriteFile(scratch, make([]byte, 100_000), 0o600); err != nil {
			return tasks.Outcome{}, err
		}
		return taskstest.Quick(ctx, job)
	})}
	var ids []string
	for i := range 40 {
		ids = append(ids, f.Add(func(r *tasks.Request) { r.Audio = f.Audio(fmt.Sprintf("sleep 20ms %d", i)) }).ID)
	}
	stopFull := f.Start(1, full)
	stop := f.Start(1, worker.Config{Engine: scripted})
	for _, id := range ids {
		require.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
	}
	stop()
	assert.Equal(t, int64(1), tried.Load(), "it stopped claiming after the first")
	assert.Zero(t, f.Count("SELECT SUM(failures + interruptions) FROM tasks"), "no attempt is counted")
	require.NoError(t, os.Remove(filler))
	last := f.Add(nil)
	require.Equal(t, tasks.StatusDone, f.WaitFor(last.ID).Status, "the worker claims again when there is room")
	stopFull()
	assert.Equal(t, []string{"disk", "disk over"}, seen.list())
	f.Exact()
	t.Logf("40 of 40 tasks done although one worker had a full disk; it claimed %d and then none until there was room", 1)
}

// troubles collects the failures that a member reports.
type troubles struct {
	mu    sync.Mutex
	noted []string
	since time.Time
}

func (s *troubles) note(part worker.Part, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since.IsZero() {
		s.noted = append(s.noted, string(part)+" over")
		return
	}
	s.noted, s.since = append(s.noted, string(part)), since
}

func (s *troubles) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.noted)
}

// TestFailedClaimsAreTrouble: while the database does not answer, a worker and
// a fetcher report the outage and probe the database, and continue when it
// answers again.
func TestFailedClaimsAreTrouble(t *testing.T) {
	f, b := brittle(t)
	var down atomic.Bool
	b.set(func(op string) (fail, after bool) { return down.Load() && !strings.HasPrefix(op, "blob "), false })
	worked, fetched := &troubles{}, &troubles{}
	down.Store(true)
	f.Start(1, worker.Config{Engine: taskstest.Quick, Outage: worked.note})
	f.StartFetcher(worker.FetcherConfig{HTTP: http.DefaultClient, Outage: fetched.note})
	time.Sleep(50 * time.Millisecond)
	down.Store(false) // both join
	require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM workers") == 2 }, 20*time.Second, 5*time.Millisecond)
	down.Store(true)
	for _, s := range []*troubles{worked, fetched} {
		require.Eventually(t, func() bool { return slices.Equal([]string{"database"}, s.list()) }, 10*time.Second, 5*time.Millisecond)
		assert.WithinDuration(t, time.Now(), s.since, time.Minute)
	}
	time.Sleep(1500 * time.Millisecond) // a probe fails
	down.Store(false)
	for _, s := range []*troubles{worked, fetched} {
		require.Eventually(t, func() bool { return slices.Equal([]string{"database", "database over"}, s.list()) }, 20*time.Second, 5*time.Millisecond)
	}
	task := f.Add(nil)
	require.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
}

// TestUnreadableModelsAreTrouble: an attempt that fails while the models can't
// be read does not count, and the worker claims nothing until they can be read.
func TestUnreadableModelsAreTrouble(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	var gone atomic.Bool
	gone.Store(true)
	var tried atomic.Int64
	seen := &troubles{}
	engine := taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
		tried.Add(1)
		if gone.Load() {
			return tasks.Outcome{}, errors.New("the recognizer did not start")
		}
		return taskstest.Quick(ctx, job)
	})
	f.Start(1, worker.Config{Engine: engine, Outage: seen.note, Models: func(context.Context) error {
		if gone.Load() {
			return os.ErrNotExist
		}
		return nil
	}})
	first, second := f.Add(nil), f.Add(nil)
	require.Eventually(t, func() bool { return slices.Equal([]string{"models"}, seen.list()) }, 10*time.Second, 5*time.Millisecond)
	time.Sleep(1500 * time.Millisecond) // a probe fails
	assert.EqualValues(t, 1, tried.Load(), "nothing is claimed")
	gone.Store(false)
	for _, id := range []string{first.ID, second.ID} {
		require.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
	}
	assert.Equal(t, []string{"models", "models over"}, seen.list())
	assert.Zero(t, f.Count("SELECT SUM(failures + interruptions) FROM tasks"))
	f.Exact()
}
