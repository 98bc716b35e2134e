package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/taskstest"
	"github.com/otograph/otograph/tasks/worker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestF2FullDiskAbandonsNothing has one worker with a full disk beside a healthy
// one: no attempt is counted, the worker stops claiming, and it works again when
// there is room.
func TestF2FullDiskAbandonsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a tmpfs needs privileges: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	filler := filepath.Join(dir, "filler")
	require.Error(t, os.WriteFile(filler, make([]byte, 5<<20), 0o600), "the disk is full")
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	var tried atomic.Int64
	full := worker.Config{TempDir: dir, Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
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
	f.Exact()
	t.Logf("F2: 40 of 40 tasks done beside a worker with a full disk, which claimed %d and then none until there was room", 1)
}
