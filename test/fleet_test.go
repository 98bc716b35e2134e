package test

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// A deployment of two machines, on one: two servers without workers and three
// worker processes on one PostgreSQL and one S3 server. From time to time a
// worker is killed and another one started. Every task is done once.
func TestFleet(t *testing.T) {
	t.Parallel()
	source := dbtest.PostgresSource(t)
	blobs := outside.S3Store(outside.S3(t, "otograph"), "otograph/service")
	out := newCustomer(t)
	flags := []string{"--database", source, "--blobs", blobs}
	first := serve(t, t.TempDir(), append(flags, "--workers", "0", "--allow-outbound", out.host())...).unlimited()
	second := serve(t, t.TempDir(), append(flags, "--workers", "0", "--allow-outbound", out.host())...)
	second.key = first.key
	servers := []*server{first, second}

	log, err := os.CreateTemp(t.TempDir(), "work-*.log")
	require.NoError(t, err)
	work := func() *exec.Cmd {
		cmd := exec.Command(binary, append([]string{"work", "--cores", "1", "--data", t.TempDir()}, flags...)...)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=")
		cmd.Stderr = log
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			if cmd.ProcessState == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		})
		return cmd
	}
	audio, options := clip(t, 8, 1.5), map[string]any{"optimize": false, "enable_diarize": false, "enable_audio_events": false, "asr_language": "en"}
	var ids []string
	submissions, kills := fleetTasks, 5
	if testing.Short() {
		submissions, kills = 6, 2
	}
	for i := range submissions {
		ids = append(ids, servers[i%2].create(upload(audio, options, "callback_url", out.URL+"/hook")))
	}
	fleet := []*exec.Cmd{work(), work(), work()}
	d := first.store()
	killed, begun, last := 0, time.Now(), time.Now()
	for {
		left := count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase <> 'final'")
		if left == 0 {
			break
		}
		if time.Since(begun) > 90*time.Minute || time.Since(begun) > 2*patience && !realTime {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%d tasks are left\n%s\n%s", left, text, first.logged())
		}
		// In the short suite, kills are scheduled by finished work,
		// independently of the machine's speed; in the long form by the clock.
		due := time.Since(last) >= fleetPause
		if !realTime {
			due = killed < kills && len(ids)-left >= 5*killed+2
		}
		if due {
			var pid int // of a worker that is processing a task
			_ = d.Read().QueryRow("SELECT MIN(w.pid) FROM tasks t JOIN workers w ON w.id = t.worker_id WHERE t.phase = 'running'").Scan(&pid)
			if n := slices.IndexFunc(fleet, func(c *exec.Cmd) bool { return c.Process.Pid == pid }); n >= 0 {
				require.NoError(t, fleet[n].Process.Signal(syscall.SIGKILL))
				_ = fleet[n].Wait()
				fleet[n] = work()
				killed++
				last = time.Now()
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(begun)
	require.Eventually(t, func() bool { return count(t, d, "SELECT COUNT(*) FROM callbacks WHERE phase <> 'delivered'") == 0 }, patience, 50*time.Millisecond)
	for i, id := range ids {
		other := servers[(i+1)%2] // query each task on the other server
		require.Equal(t, "done", other.task(id)["status"])
		assert.Equal(t, id, other.result(id)["task_id"])
		calls := out.callbacks(id)
		require.NotEmpty(t, calls)
		for _, c := range calls {
			assert.Equal(t, calls[0].header.Get("Webhook-Id"), c.header.Get("Webhook-Id"))
		}
	}
	assert.NotZero(t, killed)
	exact(t, d)
	assert.Equal(t, len(ids), count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	assert.Zero(t, count(t, d, "SELECT COUNT(*) FROM tasks WHERE failures > 0"), "the task is not blamed for its worker's death")
	again := count(t, d, "SELECT COUNT(*) FROM tasks WHERE attempt > 1")
	for _, w := range fleet {
		// The last replacement may have nothing to do, and still be starting.
		require.Eventually(t, func() bool { return count(t, d, "SELECT COUNT(*) FROM workers WHERE pid = $1", w.Process.Pid) == 1 }, patience, 50*time.Millisecond)
		require.NoError(t, w.Process.Signal(syscall.SIGTERM))
		require.NoError(t, w.Wait(), "a worker that is told to stop exits without an error")
	}
	for _, s := range servers {
		require.NoError(t, s.stop())
	}

	store, err := blob.Open(t.Context(), blobs)
	require.NoError(t, err)
	defer store.Close()
	svc, err := tasks.New(tasks.Config{DB: d, Blobs: store})
	require.NoError(t, err)
	taskstest.Tidy(t, svc)
	left := 0
	for _, prefix := range blob.Prefixes {
		require.NoError(t, store.List(t.Context(), prefix, func(blob.Object) error { left++; return nil }))
	}
	assert.Len(t, ids, left, "only the results")
	t.Logf("two servers, three workers, PostgreSQL and S3: %d tasks in %.1f s, %d workers killed, %d tasks ran again; %d done once, %d charges, ledger exact, %d files are the %d results",
		len(ids), took.Seconds(), killed, again, len(ids), len(ids), left, len(ids))
}
