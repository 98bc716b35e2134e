package tasks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachSource runs test over both kinds of store with the connection string that child processes need.
func eachSource(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Parallel() // these tests mostly wait
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		source := dbtest.SQLitePath(t)
		f := newFixture(t, dbtest.Open(t, source, db.Options{}))
		f.source = source
		test(t, f)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		source := dbtest.PostgresSource(t)
		f := newFixture(t, dbtest.Open(t, source, db.Options{}))
		f.source = source
		test(t, f)
	})
}

// workerPIDs are the worker processes that have a heartbeat row.
func (f *fixture) workerPIDs() (pids []int) {
	rows, err := f.db.Read().Query("SELECT pid FROM workers WHERE kind = 'worker' ORDER BY pid")
	require.NoError(f.t, err)
	defer rows.Close()
	for rows.Next() {
		var pid int
		require.NoError(f.t, rows.Scan(&pid))
		pids = append(pids, pid)
	}
	require.NoError(f.t, rows.Err())
	return pids
}

// isChild reports that a process is one of this test program's: numbers are used again.
func isChild(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	me, _ := os.Executable()
	return err == nil && exe == me && pid != os.Getpid()
}

// TestT1Kill kills workers and the serving process (supervisor, notifier, maintainer) at random moments while tasks flow.
func TestT1Kill(t *testing.T) {
	eachSource(t, func(t *testing.T, f *fixture) {
		seed := uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 1))
		hook := newReceiver(t)
		serve := f.child("serve")
		var ids []string
		kills, workers, serves := 0, 0, 0
		for kills < killsInSuite {
			var alive []int
			for _, pid := range f.workerPIDs() {
				if isChild(pid) {
					alive = append(alive, pid)
				}
			}
			if len(alive) == 0 { // all of them are being replaced
				time.Sleep(10 * time.Millisecond)
				continue
			}
			for range 3 {
				ids = append(ids, f.create(func(r *Request) {
					r.Audio = f.audio(fmt.Sprintf("sleep %dms %d", 10+random.IntN(150), len(ids)))
					r.CallbackURL = hook.URL
				}).ID)
			}
			time.Sleep(time.Duration(20+random.IntN(150)) * time.Millisecond)
			if random.IntN(5) == 0 {
				serve.kill(t)
				serve = f.child("serve")
				serves++
				kills++
			} else if syscall.Kill(alive[random.IntN(len(alive))], syscall.SIGKILL) == nil {
				workers++
				kills++
			}
		}
		for _, id := range ids {
			task := f.wait(id)
			message := ""
			if task.ErrorMessage != nil {
				message = *task.ErrorMessage
			}
			require.Equal(t, StatusDone, task.Status, "seed %d: %s", seed, message)
		}
		require.Eventually(t, func() bool { return f.count("SELECT COUNT(*) FROM callbacks WHERE phase <> 'delivered'") == 0 }, 30*time.Second, 20*time.Millisecond)
		again := f.count("SELECT COUNT(*) FROM tasks WHERE attempt > 1")
		serve.end(t)
		f.exact()
		told, distinct, deliveries := hook.counts()
		assert.Equal(t, len(ids), told)
		assert.Equal(t, len(ids), distinct, "one callback, whatever the deliveries")
		assert.Equal(t, len(ids), f.count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		m := NewMaintainer(f.Service, MaintainerConfig{OrphanAge: -time.Hour})
		before := len(f.orphans())
		require.NoError(t, m.Cleanup(t.Context()))
		assert.Empty(t, f.orphans())
		t.Logf("T1: seed %d: %d kills (%d workers, %d serving), %d of %d tasks done once (%d ran again), %d charges, %d callbacks in %d deliveries, %d orphaned files before the clean-up and 0 after",
			seed, kills, workers, serves, len(ids), len(ids), again, len(ids), distinct, deliveries, before)
	})
}

// TestT4StaleAttempt stops a worker process (SIGSTOP) past its heartbeat, lets another finish its task, and continues it.
func TestT4StaleAttempt(t *testing.T) {
	eachSource(t, func(t *testing.T, f *fixture) {
		hook := newReceiver(t)
		task := f.create(func(r *Request) { r.Audio = f.audio("sleep 400ms x"); r.CallbackURL = hook.URL })
		late := f.child("worker")
		require.Eventually(t, func() bool { return f.count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 1 }, 20*time.Second, 5*time.Millisecond)
		require.NoError(t, late.Process.Signal(syscall.SIGSTOP))
		w := newWatch(f.Service, time.Second, 50*time.Millisecond)
		begun := time.Now()
		for {
			dead, err := w.look(t.Context())
			require.NoError(t, err)
			if dead > 0 {
				break
			}
			require.Less(t, time.Since(begun), 20*time.Second)
			time.Sleep(50 * time.Millisecond)
		}
		stop := f.start(1, WorkerConfig{Engine: quick})
		done := f.wait(task.ID)
		stop()
		balance, err := f.billing.Balance(t.Context(), f.account)
		require.NoError(t, err)
		require.NoError(t, late.Process.Signal(syscall.SIGCONT))
		time.Sleep(800 * time.Millisecond) // its engine ends in that time and its commit is refused
		late.end(t)
		after := f.get(task.ID)
		assert.Equal(t, done, after, "the late commit changed nothing")
		assert.Equal(t, 2, f.count("SELECT attempt FROM tasks"))
		assert.Equal(t, 1, f.count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		assert.Equal(t, 1, f.count("SELECT COUNT(*) FROM callbacks"))
		again, err := f.billing.Balance(t.Context(), f.account)
		require.NoError(t, err)
		assert.Equal(t, balance, again)
		assert.NotNil(t, f.result(task.ID)["segments"], "the second worker's result")
		f.exact()
		t.Logf("T4: 2 attempts, 1 charge, 1 callback; found dead after %.1f s of silence", time.Since(begun).Seconds())
	})
}

// TestT5Poison has one input that kills the worker each time, among healthy ones.
func TestT5Poison(t *testing.T) {
	eachSource(t, func(t *testing.T, f *fixture) {
		serve := f.child("serve")
		poison := f.create(func(r *Request) { r.Audio = f.audio("crash") })
		var healthy []string
		for i := range 10 {
			healthy = append(healthy, f.create(func(r *Request) { r.Audio = f.audio(fmt.Sprintf("sleep 20ms %d", i)) }).ID)
		}
		gone := f.wait(poison.ID)
		assert.Equal(t, StatusAbandoned, gone.Status)
		assert.Contains(t, *gone.ErrorMessage, "crashed the decoder")
		for _, id := range healthy {
			assert.Equal(t, StatusDone, f.wait(id).Status)
		}
		serve.end(t)
		assert.Equal(t, maxCrashes, f.count("SELECT crashes FROM tasks WHERE id = $1", poison.ID))
		assert.Zero(t, f.count("SELECT COALESCE(SUM(failures), 0) FROM tasks WHERE id <> $1", poison.ID), "neighbours lost no attempt")
		f.exact()
		t.Logf("T5: abandoned after %d crashes (%q), %d of %d neighbours done without a lost attempt", maxCrashes, *gone.ErrorMessage, len(healthy), len(healthy))
	})
}

// TestT6Hang has an engine that never comes back.
func TestT6Hang(t *testing.T) {
	eachSource(t, func(t *testing.T, f *fixture) {
		serve := f.child("serve", envTimeout+"=300ms")
		hang := f.create(func(r *Request) { r.Audio = f.audio("hang") })
		var healthy []string
		for i := range 6 {
			healthy = append(healthy, f.create(func(r *Request) { r.Audio = f.audio(fmt.Sprintf("sleep 20ms %d", i)) }).ID)
		}
		before := map[int]bool{}
		for _, pid := range f.workerPIDs() {
			before[pid] = true
		}
		gone := f.wait(hang.ID)
		assert.Equal(t, StatusAbandoned, gone.Status)
		assert.Contains(t, *gone.ErrorMessage, "wall-clock limit")
		for _, id := range healthy {
			assert.Equal(t, StatusDone, f.wait(id).Status)
		}
		serve.end(t)
		assert.Equal(t, 4, f.count("SELECT failures FROM tasks WHERE id = $1", hang.ID), "each hang is an attempt")
		f.exact()
		t.Logf("T6: 4 attempts ended by the wall clock, then abandoned: %q; %d neighbours done", *gone.ErrorMessage, len(healthy))
	})
}

// TestT19Drain asks the serving process to end under load.
func TestT19Drain(t *testing.T) {
	eachSource(t, func(t *testing.T, f *fixture) {
		serve := f.child("serve")
		var ids []string
		for i := range 30 {
			duration := "50ms"
			if i%3 == 0 {
				duration = "20s" // longer than the grace: handed back
			}
			ids = append(ids, f.create(func(r *Request) { r.Audio = f.audio("sleep " + duration + fmt.Sprint(" ", i)) }).ID)
		}
		require.Eventually(t, func() bool { return f.count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 2 }, 20*time.Second, 5*time.Millisecond)
		took := serve.end(t)
		assert.Less(t, took, 20*time.Second, "the tasks of 20 s did not hold it up")
		done, waiting := 0, 0
		for _, id := range ids {
			switch task := f.get(id); task.Status {
			case StatusDone:
				done++
			case StatusProcessing:
				waiting++
			default:
				t.Errorf("task %s is %s", id, task.Status)
			}
		}
		assert.Zero(t, f.count("SELECT COUNT(*) FROM tasks WHERE phase = 'running'"))
		assert.Zero(t, f.count("SELECT COALESCE(SUM(failures + interruptions), 0) FROM tasks"), "handed back uncounted")
		assert.Zero(t, f.count("SELECT COUNT(*) FROM workers"))
		f.exact()
		t.Logf("T19: ended in %.2f s, %d done, %d waiting for the next start, none lost, none counted", took.Seconds(), done, waiting)
	})
}

// TestVerdict tells deaths apart.
func TestVerdict(t *testing.T) {
	for script, want := range map[string]ending{"exit 0": endHandedBack, "exit 3": endCrash, "kill -SEGV $$": endCrash, "kill -ABRT $$": endCrash, "kill -KILL $$": endInterrupted, "kill -TERM $$": endInterrupted} {
		v := &Supervisor{config: SupervisorConfig{Command: strings.Fields("/bin/sh -c"), Grace: time.Second}, children: map[string]*os.Process{}}
		v.config.Command = append(v.config.Command, script)
		how, message, err := v.runOne(t.Context(), "x", oomKills())
		require.NoError(t, err)
		assert.Equal(t, want, how, "%s: %s", script, message)
	}
}
