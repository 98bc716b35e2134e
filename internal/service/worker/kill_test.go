package worker_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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

// eachSource runs test on both kinds of store, with the connection string that
// child processes need.
func eachSource(t *testing.T, test func(t *testing.T, f *taskstest.Fixture)) {
	t.Parallel() // these tests mostly wait
	onSource(t, "sqlite", dbtest.SQLitePath, test)
	onSource(t, "postgres", dbtest.PostgresSource, test)
}

// eitherSource is eachSource for tests of processes, which treat both kinds of
// store alike: the short form has SQLite.
func eitherSource(t *testing.T, test func(t *testing.T, f *taskstest.Fixture)) {
	if !testing.Short() {
		eachSource(t, test)
		return
	}
	t.Parallel()
	onSource(t, "sqlite", dbtest.SQLitePath, test)
}

func onSource(t *testing.T, name string, open func(testing.TB) string, test func(t *testing.T, f *taskstest.Fixture)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		source := open(t)
		f := taskstest.New(t, dbtest.Open(t, source, db.Options{}))
		f.Source = source
		test(t, f)
	})
}

// workerPIDs returns the worker processes with a heartbeat row.
func workerPIDs(f *taskstest.Fixture) (pids []int) {
	rows, err := f.Config.DB.Read().Query("SELECT pid FROM workers WHERE kind = 'worker' ORDER BY pid")
	require.NoError(f.T, err)
	defer rows.Close()
	for rows.Next() {
		var pid int
		require.NoError(f.T, rows.Scan(&pid))
		pids = append(pids, pid)
	}
	require.NoError(f.T, rows.Err())
	return pids
}

// isChild reports whether a process belongs to this test program: process
// numbers are reused.
func isChild(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	me, _ := os.Executable()
	return err == nil && exe == me && pid != os.Getpid()
}

// TestKilledProcessesLoseNothing kills workers and the serving process
// (supervisor, notifier, maintainer) at random moments while tasks flow. It
// covers T1 of test/README.md.
func TestKilledProcessesLoseNothing(t *testing.T) {
	eachSource(t, func(t *testing.T, f *taskstest.Fixture) {
		seed := uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 1))
		hook := newReceiver(t)
		serve := startChild(f, "serve")
		var ids []string
		kills, workers, serves := 0, 0, 0
		for kills < killsInSuite {
			var alive []int
			for _, pid := range workerPIDs(f) {
				if isChild(pid) {
					alive = append(alive, pid)
				}
			}
			if len(alive) == 0 { // all workers are being replaced
				time.Sleep(10 * time.Millisecond)
				continue
			}
			for range 3 {
				ids = append(ids, f.Add(func(r *tasks.Request) {
					r.Audio = f.Audio(fmt.Sprintf("sleep %dms %d", 10+random.IntN(150), len(ids)))
					r.CallbackURL = hook.URL
				}).ID)
			}
			time.Sleep(time.Duration(20+random.IntN(150)) * time.Millisecond)
			if random.IntN(5) == 0 {
				serve.kill(t)
				serve = startChild(f, "serve")
				serves++
				kills++
			} else if syscall.Kill(alive[random.IntN(len(alive))], syscall.SIGKILL) == nil {
				workers++
				kills++
			}
		}
		for _, id := range ids {
			task := f.WaitFor(id)
			message := ""
			if task.ErrorMessage != nil {
				message = *task.ErrorMessage
			}
			require.Equal(t, tasks.StatusDone, task.Status, "seed %d: %s", seed, message)
		}
		require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM callbacks WHERE phase <> 'delivered'") == 0 }, 30*time.Second, 20*time.Millisecond)
		again := f.Count("SELECT COUNT(*) FROM tasks WHERE attempt > 1")
		serve.end(t)
		f.Exact()
		told, distinct, deliveries := hook.counts()
		assert.Equal(t, len(ids), told)
		assert.Equal(t, len(ids), distinct, "one callback, with any number of deliveries")
		assert.Equal(t, len(ids), f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		before := len(f.Orphans())
		f.Tidy()
		assert.Empty(t, f.Orphans())
		t.Logf("T1: seed %d: %d kills (%d workers, %d serving), %d of %d tasks done once (%d ran again), %d charges, %d callbacks in %d deliveries, %d orphaned files before the clean-up and 0 after",
			seed, kills, workers, serves, len(ids), len(ids), again, len(ids), distinct, deliveries, before)
	})
}

// TestStaleAttemptHasNoEffect stops a worker process (SIGSTOP) for longer than
// its heartbeat allows, lets another one finish its task, and continues the
// first. It covers T4 of test/README.md.
func TestStaleAttemptHasNoEffect(t *testing.T) {
	eachSource(t, func(t *testing.T, f *taskstest.Fixture) {
		hook := newReceiver(t)
		task := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("sleep 2s x"); r.CallbackURL = hook.URL })
		late := startChild(f, "worker")
		require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 1 }, 20*time.Second, 5*time.Millisecond)
		stopBetweenWrites(f, late.Process.Pid)
		w := f.Watch(time.Second, 50*time.Millisecond)
		begun := time.Now()
		for {
			dead, err := w.Look(t.Context())
			require.NoError(t, err)
			if dead > 0 {
				break
			}
			require.Less(t, time.Since(begun), 20*time.Second)
			time.Sleep(50 * time.Millisecond)
		}
		stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
		done := f.WaitFor(task.ID)
		stop()
		balance, err := f.Billing().Balance(t.Context(), f.Account)
		require.NoError(t, err)
		require.NoError(t, late.Process.Signal(syscall.SIGCONT))
		time.Sleep(800 * time.Millisecond) // meanwhile the engine ends and the commit is refused
		late.end(t)
		after := f.Row(task.ID)
		assert.Equal(t, done, after, "the late commit changed nothing")
		assert.Equal(t, 2, f.Count("SELECT attempt FROM tasks"))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks"))
		again, err := f.Billing().Balance(t.Context(), f.Account)
		require.NoError(t, err)
		assert.Equal(t, balance, again)
		r, _ := f.ReadResult(task.ID)
		assert.NotEmpty(t, r.Segments, "the second worker's result")
		f.Exact()
		t.Logf("T4: 2 attempts, 1 charge, 1 callback; found dead after %.1f s of silence", time.Since(begun).Seconds())
	})
}

// stopBetweenWrites stops the process (SIGSTOP) while it holds no database
// lock: SQLite has one lock for all writers, and a process stopped while it
// holds the lock would block all others; on PostgreSQL it would block other
// writers of the same rows.
func stopBetweenWrites(f *taskstest.Fixture, pid int) {
	f.T.Helper()
	d, err := db.Open(f.T.Context(), f.Source, db.Options{MaxConns: 2, BusyTimeout: 100 * time.Millisecond})
	require.NoError(f.T, err)
	defer d.Close()
	require.Eventually(f.T, func() bool {
		assert.NoError(f.T, syscall.Kill(pid, syscall.SIGSTOP))
		open := 0
		err := d.Write(f.T.Context(), func(tx *sql.Tx) error {
			if d.Dialect() != db.Postgres {
				return nil
			}
			return tx.QueryRow("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL").Scan(&open)
		})
		if err == nil && open == 0 {
			return true
		}
		assert.NoError(f.T, syscall.Kill(pid, syscall.SIGCONT))
		return false
	}, 20*time.Second, 7*time.Millisecond)
}

// TestPoisonedTaskIsAbandoned mixes healthy inputs with an input that always
// kills the worker. It covers T5 of test/README.md.
func TestPoisonedTaskIsAbandoned(t *testing.T) {
	eitherSource(t, func(t *testing.T, f *taskstest.Fixture) {
		serve := startChild(f, "serve")
		poison := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("crash") })
		var healthy []string
		for i := range 10 {
			healthy = append(healthy, f.Add(func(r *tasks.Request) { r.Audio = f.Audio(fmt.Sprintf("sleep 20ms %d", i)) }).ID)
		}
		gone := f.WaitFor(poison.ID)
		assert.Equal(t, tasks.StatusAbandoned, gone.Status)
		assert.Contains(t, *gone.ErrorMessage, "crashed the decoder")
		for _, id := range healthy {
			assert.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
		}
		serve.end(t)
		assert.Equal(t, tasks.MaxCrashes, f.Count("SELECT crashes FROM tasks WHERE id = $1", poison.ID))
		assert.Zero(t, f.Count("SELECT COALESCE(SUM(failures), 0) FROM tasks WHERE id <> $1", poison.ID), "neighbors lost no attempt")
		f.Exact()
		t.Logf("T5: abandoned after %d crashes (%q), %d of %d neighbors done without a lost attempt", tasks.MaxCrashes, *gone.ErrorMessage, len(healthy), len(healthy))
	})
}

// TestHangingEngineIsEnded uses an engine that never returns; the other tasks
// go on. It covers T6 of test/README.md.
func TestHangingEngineIsEnded(t *testing.T) {
	eitherSource(t, func(t *testing.T, f *taskstest.Fixture) {
		serve := startChild(f, "serve", envStall+"=2s")
		hang := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("hang") })
		var healthy []string
		for i := range 6 {
			healthy = append(healthy, f.Add(func(r *tasks.Request) { r.Audio = f.Audio(fmt.Sprintf("sleep 20ms %d", i)) }).ID)
		}
		before := map[int]bool{}
		for _, pid := range workerPIDs(f) {
			before[pid] = true
		}
		gone := f.WaitFor(hang.ID)
		assert.Equal(t, tasks.StatusAbandoned, gone.Status)
		assert.Contains(t, *gone.ErrorMessage, "a failure of the service's engine: no progress for")
		for _, id := range healthy {
			assert.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
		}
		serve.end(t)
		assert.Equal(t, 4, f.Count("SELECT failures FROM tasks WHERE id = $1", hang.ID), "each hang is an attempt")
		f.Exact()
		t.Logf("T6: 4 attempts ended without progress, then abandoned: %q; %d neighbors done", *gone.ErrorMessage, len(healthy))
	})
}

// TestDrainUnderLoad asks the serving process to end under load. It covers T19
// of test/README.md.
func TestDrainUnderLoad(t *testing.T) {
	eachSource(t, func(t *testing.T, f *taskstest.Fixture) {
		serve := startChild(f, "serve")
		var ids []string
		for i := range 30 {
			duration := "50ms"
			if i%3 == 0 {
				duration = "1h" // longer than the grace: handed back
			}
			ids = append(ids, f.Add(func(r *tasks.Request) { r.Audio = f.Audio("sleep " + duration + fmt.Sprint(" ", i)) }).ID)
		}
		require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 2 }, 20*time.Second, 5*time.Millisecond)
		took := serve.end(t) // fails if tasks of an hour delay the end
		done, waiting := 0, 0
		for _, id := range ids {
			switch task := f.Row(id); task.Status {
			case tasks.StatusDone:
				done++
			case tasks.StatusProcessing:
				waiting++
			default:
				t.Errorf("task %s is %s", id, task.Status)
			}
		}
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'"))
		assert.Zero(t, f.Count("SELECT COALESCE(SUM(failures + interruptions), 0) FROM tasks"), "handed back uncounted")
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM workers"))
		f.Exact()
		t.Logf("T19: ended in %.2f s, %d done, %d waiting for the next start, none lost, none counted", took.Seconds(), done, waiting)
	})
}

// TestSilentChildIsReplaced stops a worker (SIGSTOP); its supervisor kills and
// replaces it. On a busy machine the supervisor may also take its successor
// for silent.
func TestSilentChildIsReplaced(t *testing.T) {
	eitherSource(t, func(t *testing.T, f *taskstest.Fixture) {
		task := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("sleep 400ms x") })
		source, dir := f.Source, f.Dir
		v, err := worker.NewSupervisor(f.Service.Runs, worker.SupervisorConfig{
			Command: []string{"/proc/self/exe"}, N: 1, Heartbeat: 100 * time.Millisecond, Stale: 5 * time.Second, MinPause: 10 * time.Millisecond,
			Env: []string{envProcess + "=worker", envDatabase + "=" + source, envBlobs + "=" + dir, "GOMAXPROCS=2"},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 1 }, 30*time.Second, 5*time.Millisecond)
		first := v.Children()
		require.Len(t, first, 1)
		require.NoError(t, syscall.Kill(first[0], syscall.SIGSTOP))
		assert.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
		restarts := v.Restarts()
		assert.Positive(t, restarts)
		assert.NotContains(t, v.Children(), first[0])
		cancel()
		require.NoError(t, <-done)
		interruptions := f.Count("SELECT interruptions FROM tasks")
		assert.Positive(t, interruptions)
		assert.LessOrEqual(t, interruptions, restarts)
		assert.Zero(t, f.Count("SELECT failures FROM tasks"), "not the task's fault")
		assert.Empty(t, v.Children())
		f.Exact()
	})
}

// TestChildWithoutABeatIsReplaced starts a process that never joins the queue.
func TestChildWithoutABeatIsReplaced(t *testing.T) {
	t.Parallel()
	f := taskstest.New(t, dbtest.Open(t, dbtest.SQLitePath(t), db.Options{}))
	v, err := worker.NewSupervisor(f.Service.Runs, worker.SupervisorConfig{
		Command: []string{"/bin/sleep", "1000"}, N: 1, Heartbeat: 10 * time.Millisecond, Start: 50 * time.Millisecond, MinPause: time.Millisecond, MaxPause: time.Millisecond,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- v.Run(ctx) }()
	require.Eventually(t, func() bool { return v.Restarts() >= 2 }, 30*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

// TestFallbackCommandFollowsACrash runs the fallback command after a crash, and
// the primary one again after a crash of the fallback.
func TestFallbackCommandFollowsACrash(t *testing.T) {
	t.Parallel()
	f := taskstest.New(t, dbtest.Open(t, dbtest.SQLitePath(t), db.Options{}))
	log := filepath.Join(t.TempDir(), "log")
	child := func(name string) []string {
		return []string{"/bin/sh", "-c", "echo " + name + " >>'" + log + "'; kill -SEGV $$"}
	}
	v, err := worker.NewSupervisor(f.Service.Runs, worker.SupervisorConfig{
		Command: child("primary"), Fallback: child("fallback"), N: 1, MinPause: time.Millisecond, MaxPause: time.Millisecond,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- v.Run(ctx) }()
	var lines []string
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(log)
		lines = strings.Fields(string(text))
		return len(lines) >= 3
	}, 30*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	assert.Equal(t, []string{"primary", "fallback", "primary"}, lines[:3])
}

// TestPrimaryCommandReturnsAfterTheTurn ends a healthy fallback process when
// its turn is over, and does not count it as a crash.
func TestPrimaryCommandReturnsAfterTheTurn(t *testing.T) {
	t.Parallel()
	f := taskstest.New(t, dbtest.Open(t, dbtest.SQLitePath(t), db.Options{}))
	log := filepath.Join(t.TempDir(), "log")
	v, err := worker.NewSupervisor(f.Service.Runs, worker.SupervisorConfig{
		Command: []string{"/bin/sh", "-c", "echo primary >>'" + log + "'; kill -SEGV $$"}, Fallback: []string{"/bin/sleep", "1000"},
		N: 1, MinPause: time.Millisecond, MaxPause: time.Millisecond, Return: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- v.Run(ctx) }()
	primary := func() int {
		text, _ := os.ReadFile(log)
		return len(strings.Fields(string(text)))
	}
	require.Eventually(t, func() bool { return primary() >= 2 }, 30*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	assert.LessOrEqual(t, v.Restarts(), primary())
}

// TestCauseOfAProcessDeath distinguishes the ways in which processes die.
func TestCauseOfAProcessDeath(t *testing.T) {
	for script, want := range map[string]tasks.Ending{"exit 0": tasks.EndHandedBack, "exit 3": tasks.EndCrash, "exit 75": tasks.EndInterrupted, "kill -SEGV $$": tasks.EndCrash, "kill -ABRT $$": tasks.EndCrash, "kill -KILL $$": tasks.EndInterrupted, "kill -TERM $$": tasks.EndInterrupted} {
		v, err := worker.NewSupervisor(nil, worker.SupervisorConfig{Command: append(strings.Fields("/bin/sh -c"), script), N: 1, Grace: time.Second})
		require.NoError(t, err)
		how, message, err := v.RunOne(t.Context(), "x", worker.OOMKills())
		require.NoError(t, err)
		assert.Equal(t, want, how, "%s: %s", script, message)
	}
}
