package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestWorkSurvivesDatabaseOutage stops PostgreSQL while workers run and
// customers submit. It covers T3 of test/README.md.
func TestWorkSurvivesDatabaseOutage(t *testing.T) {
	if dbtest.Programs() == "" {
		t.Skip("PostgreSQL's server programs are not installed")
	}
	server, err := dbtest.StartServer()
	require.NoError(t, err)
	defer server.Close()
	d := dbtest.Open(t, server.Source("postgres"), db.Options{})
	require.NoError(t, d.Migrate(t.Context()))
	f := taskstest.New(t, d)
	stop := f.Start(2, worker.Config{Engine: scripted, Heartbeat: 100 * time.Millisecond})
	var ids []string
	for i := range 20 {
		ids = append(ids, f.Add(func(r *tasks.Request) { r.Audio = f.Audio(fmt.Sprintf("sleep 200ms %d", i)) }).ID)
	}
	time.Sleep(300 * time.Millisecond) // in the middle of tasks
	server.Stop()
	begun := time.Now()
	refused := 0
	for time.Since(begun) < outage {
		_, _, err := f.Create(t.Context(), f.Request(nil), tasks.Idempotency{})
		require.ErrorIs(t, err, db.ErrUnavailable)
		_, err = f.Get(t.Context(), f.Account, ids[0])
		require.ErrorIs(t, err, db.ErrUnavailable)
		refused += 2
		time.Sleep(100 * time.Millisecond)
	}
	require.NoError(t, server.Start())
	for _, id := range ids {
		require.Eventually(t, func() bool {
			task, err := f.Get(t.Context(), f.Account, id)
			return err == nil && task.Final()
		}, 60*time.Second, 20*time.Millisecond)
		require.Equal(t, tasks.StatusDone, f.Row(id).Status)
	}
	stop()
	failures := f.Count("SELECT COALESCE(SUM(failures), 0) FROM tasks")
	assert.Zero(t, failures, "an outage of the database costs no attempt")
	f.Exact()
	t.Logf("T3: database away for %s: %d requests answered unavailable, 20 of 20 tasks done afterwards, %d attempts lost", outage, refused, failures)
}

// TestWorkSurvivesFullDisk fills a small disk that holds database and files. It
// covers T2 of test/README.md.
func TestWorkSurvivesFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=10m"); err != nil {
		t.Skipf("mounting a tmpfs needs privileges: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	d := dbtest.Open(t, filepath.Join(dir, "otograph.db"), db.Options{})
	require.NoError(t, d.Migrate(t.Context()))
	blobs, err := blob.Open(t.Context(), filepath.Join(dir, "blobs"))
	require.NoError(t, err)
	s, err := tasks.New(tasks.Config{DB: d, Blobs: blobs})
	require.NoError(t, err)
	people := accounts.New(d, nil, nil)
	a, err := people.Create(t.Context(), "customer")
	require.NoError(t, err)
	f := &taskstest.Fixture{Service: s, T: t, Account: a.ID, Dir: filepath.Join(dir, "blobs")}
	_, err = s.Billing().Recharge(t.Context(), a.ID, 100*billing.Unit, "")
	require.NoError(t, err)
	many := 10_000
	require.NoError(t, people.SetLimits(t.Context(), a.ID, accounts.Overrides{Concurrency: &many}))
	ballast := filepath.Join(dir, "ballast") // removed later to make room
	require.NoError(t, os.WriteFile(ballast, make([]byte, 2<<20), 0o600))
	submit := func() error {
		w, err := f.NewAudio(t.Context(), "a.wav")
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write(make([]byte, 200_000)); err != nil {
			return err
		}
		info, err := w.Commit()
		if err != nil {
			return err
		}
		_, _, err = f.Create(t.Context(), f.Request(func(r *tasks.Request) { r.Audio = &info }), tasks.Idempotency{})
		return err
	}
	accepted := 0
	for err = submit(); err == nil; err = submit() {
		accepted++
		require.Less(t, accepted, 100)
	}
	require.True(t, errors.Is(err, blob.ErrFull) || errors.Is(err, db.ErrFull), "%v", err)
	// Fills the rest of the disk, so that the database cannot grow.
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, make([]byte, 12<<20), 0o600)
	refused := 0
	for range 50 {
		if _, _, err := f.Create(t.Context(), f.Request(func(r *tasks.Request) { r.URL = "https://source.example/" + string(bytes.Repeat([]byte("x"), 2000)) }), tasks.Idempotency{}); err != nil {
			require.True(t, errors.Is(err, db.ErrFull) || errors.Is(err, db.ErrUnavailable), "%v", err)
			refused++
		} else {
			accepted++
		}
	}
	assert.Positive(t, refused)
	require.Equal(t, accepted, f.Count("SELECT COUNT(*) FROM tasks"))
	f.Exact()
	require.NoError(t, os.Remove(filler))
	require.NoError(t, os.Remove(ballast))
	stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(context.Context, worker.Job) (tasks.Outcome, error) {
		return tasks.Outcome{Seconds: 1}, nil
	})})
	defer stop()
	rows := f.Count("SELECT COUNT(*) FROM tasks WHERE audio_source_type = 'base64'")
	require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'") >= rows }, 30*time.Second, 20*time.Millisecond)
	stop()
	require.NoError(t, submit(), "room again")
	f.Exact()
	t.Logf("T2: disk of 10 MB: %d tasks accepted before it was full, %d submissions refused as full, %d uploaded tasks done and submissions taken once there was room", accepted, refused, rows)
}

// TestRestartKeepsEveryState stops the service with tasks in every state,
// migrates and starts again: all states are unchanged. It covers T20 of
// test/README.md.
func TestRestartKeepsEveryState(t *testing.T) {
	open := func(t *testing.T, source string) {
		f := taskstest.New(t, dbtest.Open(t, source, db.Options{}))
		var ids []string
		for range 6 {
			ids = append(ids, f.Add(func(r *tasks.Request) { r.CallbackURL = "https://receiver.example/" }).ID)
		}
		endings := []func(c *tasks.Claim) error{
			func(c *tasks.Claim) error {
				return f.Complete(t.Context(), c, tasks.Outcome{Seconds: 1})
			},
			func(c *tasks.Claim) error { return f.Release(t.Context(), c, tasks.EndPermanent, "x") },
			func(c *tasks.Claim) error { return f.Release(t.Context(), c, tasks.EndRecoverable, "x") },
			func(c *tasks.Claim) error { return nil }, // running when the power fails
		}
		for _, end := range endings {
			require.NoError(t, end(f.Take()))
		}
		before := map[string]tasks.Task{}
		for _, id := range ids {
			before[id] = f.Row(id)
		}
		require.NoError(t, f.Config.DB.Close())

		var wait sync.WaitGroup
		for range 3 { // several processes of the new version start simultaneously
			wait.Go(func() {
				d, err := db.Open(context.Background(), source, db.Options{})
				if err == nil {
					err = d.Migrate(context.Background())
					d.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		again := dbtest.Open(t, source, db.Options{})
		s, err := tasks.New(tasks.Config{DB: again, Blobs: f.Config.Blobs})
		require.NoError(t, err)
		g := &taskstest.Fixture{Service: s, T: t, Account: f.Account, Dir: f.Dir}
		for _, id := range ids {
			require.Equal(t, before[id], g.Row(id))
		}
		g.Exact()
		g.Exec("UPDATE tasks SET run_at = 0 WHERE phase = 'delayed'")
		_, err = g.Reap(t.Context(), "w", tasks.EndInterrupted, "the power went")
		require.NoError(t, err)
		stop := g.Start(1, worker.Config{Engine: taskstest.Quick})
		done := 0
		for _, id := range ids {
			if g.WaitFor(id).Status == tasks.StatusDone {
				done++
			}
		}
		stop()
		assert.Equal(t, 5, done)
		g.Exact()
		t.Logf("T20: %d tasks in 5 states are unchanged after a restart with 3 migrations at once; %d done in the end, 1 failed for good", len(ids), done)
	}
	t.Run("sqlite", func(t *testing.T) { open(t, dbtest.SQLitePath(t)) })
	t.Run("postgres", func(t *testing.T) { open(t, dbtest.PostgresSource(t)) })
}

// TestBackupResumesEveryTask copies the store under load and runs the copy:
// every task in it resumes. It covers T24 of test/README.md.
func TestBackupResumesEveryTask(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.KeepAudio = time.Hour })
	stop := f.Start(2, worker.Config{Engine: scripted, Heartbeat: 50 * time.Millisecond})
	for i := range 60 {
		f.Add(func(r *tasks.Request) { r.Audio = f.Audio(fmt.Sprintf("sleep %dms", i%10)) })
	}
	copied := filepath.Join(dbtest.Dir(t), "copy.db")
	require.NoError(t, f.Config.DB.Backup(t.Context(), copied))
	stop()
	files := filepath.Join(dbtest.Dir(t), "blobs")
	require.NoError(t, os.CopyFS(files, os.DirFS(f.Dir)))

	d := dbtest.Open(t, copied, db.Options{})
	blobs, err := blob.Open(t.Context(), files)
	require.NoError(t, err)
	defer blobs.Close()
	s, err := tasks.New(tasks.Config{DB: d, Blobs: blobs})
	require.NoError(t, err)
	g := &taskstest.Fixture{Service: s, T: t, Account: f.Account, Dir: files}
	g.Exact()
	states := map[string]int{}
	for _, phase := range []string{"queued", "running", "final"} {
		states[phase] = g.Count("SELECT COUNT(*) FROM tasks WHERE phase = $1", phase)
	}
	assert.Equal(t, 60, states["queued"]+states["running"]+states["final"])
	// The workers of the original do not exist here: the watch finds them
	// silent.
	w := s.Watch(200*time.Millisecond, 50*time.Millisecond)
	for range 20 {
		_, err := w.Look(t.Context())
		require.NoError(t, err)
		time.Sleep(20 * time.Millisecond)
	}
	stop = g.Start(2, worker.Config{Engine: scripted})
	require.Eventually(t, func() bool { return g.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'") == 60 }, 30*time.Second, 20*time.Millisecond)
	stop()
	g.Exact()
	t.Logf("T24: copy taken under load with %d queued, %d running, %d final tasks: 60 of 60 done there", states["queued"], states["running"], states["final"])
}
