//go:build town

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// town is two servers and three workers on PostgreSQL and S3, with customers
// who repeat requests until they are answered.
type town struct {
	t        *testing.T
	postgres *dbtest.Server
	s3       *s3Server
	out      *customer
	flags    []string
	mu       sync.Mutex
	servers  []*server
	workers  []*exec.Cmd
	log      *os.File
	d        *db.DB
	ids      map[string]string // of tasks, by idempotency key
	refused  int               // repeated requests
}

func newTown(t *testing.T) *town {
	if dbtest.Programs() == "" {
		t.Skip("PostgreSQL's server programs are not installed")
	}
	postgres, err := dbtest.StartServer()
	require.NoError(t, err)
	t.Cleanup(postgres.Close)
	w := &town{t: t, postgres: postgres, s3: newS3(t), out: newCustomer(t), ids: map[string]string{}}
	source := postgres.Source("postgres")
	w.out.files["/talk.wav"] = clip(t, 8, 1.5)
	w.flags = []string{"--database", source, "--blobs", w.s3.source}
	for i := range 2 {
		w.servers = append(w.servers, serve(t, t.TempDir(), append(w.flags, "--workers", "0", "--allow-outbound", w.out.host())...))
		w.servers[i].key = w.servers[0].key
	}
	w.servers[0].unlimited()
	w.servers[0].must("account", "credit", "local", "100000")
	w.log, err = os.CreateTemp(t.TempDir(), "work-*.log")
	require.NoError(t, err)
	for range 3 {
		w.workers = append(w.workers, w.work())
	}
	w.d = w.servers[0].store()
	return w
}

// work starts a worker.
func (w *town) work() *exec.Cmd {
	cmd := exec.Command(binary, append([]string{"work", "--cores", "1", "--data", w.t.TempDir()}, w.flags...)...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+w.t.TempDir(), "OTOGRAPH_MODELS=")
	cmd.Stderr = w.log
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// submit submits the n-th task repeatedly until a server accepts it.
func (w *town) submit(ctx context.Context, n int) error {
	key := fmt.Sprint("task ", n)
	options := map[string]any{"optimize": true, "enable_diarize": false, "enable_audio_events": false, "asr_language": "en"}
	body := upload(w.out.files["/talk.wav"], options, "callback_url", w.out.URL+"/hook")
	if n%2 == 0 {
		body = map[string]any{"audio_url": w.out.URL + "/talk.wav", "options": options, "callback_url": w.out.URL + "/hook"}
	}
	for try := n; ; try++ {
		w.mu.Lock()
		s := w.servers[try%len(w.servers)]
		w.mu.Unlock()
		a, err := s.try("POST", "/tasks", body, "Idempotency-Key", key)
		if err == nil && a.status == 201 {
			var task struct{ ID string }
			if err := json.Unmarshal(a.body, &task); err != nil {
				return err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ids[key] = task.ID
			return nil
		}
		if err == nil && a.status < 500 && a.status != 429 {
			return fmt.Errorf("task %d: %d %s", n, a.status, a.body)
		}
		w.mu.Lock()
		w.refused++
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return fmt.Errorf("task %d was not taken: %w", n, ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// open returns the number of unfinished tasks and callbacks.
func (w *town) open() int {
	return count(w.t, w.d, "SELECT (SELECT COUNT(*) FROM tasks WHERE phase <> 'final') + (SELECT COUNT(*) FROM callbacks WHERE phase IN ('queued', 'running'))")
}

// settle waits until everything is done and compares it with the accepted
// tasks.
func (w *town) settle(limit time.Duration) {
	t := w.t
	t.Helper()
	for deadline := time.Now().Add(limit); w.open() > 0; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			_, _ = w.log.Seek(-20_000, io.SeekEnd)
			text, _ := io.ReadAll(w.log)
			t.Fatalf("%d tasks or callbacks are left\n%s", w.open(), text)
		}
	}
	exact(t, w.d)
	w.explain()
	assert.Equal(t, len(w.ids), count(t, w.d, "SELECT COUNT(*) FROM tasks"), "exactly the accepted tasks exist")
	assert.Equal(t, len(w.ids), count(t, w.d, "SELECT COUNT(*) FROM tasks WHERE status = 'done'"))
	assert.Equal(t, len(w.ids), count(t, w.d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	assert.Zero(t, count(t, w.d, "SELECT COUNT(*) FROM tasks WHERE failures > 0"), "no task is blamed")
	assert.Equal(t, len(w.ids), count(t, w.d, "SELECT COUNT(*) FROM callbacks WHERE phase = 'delivered'"))
	for key, id := range w.ids {
		assert.Equal(t, id, w.servers[0].result(id)["task_id"], key)
		calls := w.out.callbacks(id)
		if assert.NotEmpty(t, calls, key) {
			for _, c := range calls {
				assert.Equal(t, calls[0].header.Get("Webhook-Id"), c.header.Get("Webhook-Id"))
			}
		}
	}
}

// explain logs the counted attempts.
func (w *town) explain() {
	files := []string{w.log.Name()}
	for _, s := range w.servers {
		files = append(files, s.log.Name())
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(w.t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"msg":"attempt failed"`) {
				w.t.Log(line)
			}
		}
	}
}

// length reads a duration from the environment.
func length(t *testing.T, name string, otherwise time.Duration) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, name)
	return d
}

// TestOutages stops S3 for half an hour and PostgreSQL for ten minutes, with
// work in the queue: nothing is abandoned or counted, and everything is done
// after they return. OTOGRAPH_S3_AWAY and OTOGRAPH_DATABASE_AWAY set other
// durations.
func TestOutages(t *testing.T) {
	s3Away, databaseAway := length(t, "OTOGRAPH_S3_AWAY", 30*time.Minute), length(t, "OTOGRAPH_DATABASE_AWAY", 10*time.Minute)
	w := newTown(t)
	n := 0
	more := func(k int) {
		t.Helper()
		for range k {
			require.NoError(t, w.submit(t.Context(), n))
			n++
		}
	}
	more(40)
	require.Eventually(t, func() bool { return w.open() <= 32 }, patience, 100*time.Millisecond)
	w.s3.leave()
	begun := w.open()
	time.Sleep(s3Away)
	during := w.open()
	assert.Zero(t, count(t, w.d, "SELECT COUNT(*) FROM tasks WHERE status IN ('failed', 'abandoned')"), "while S3 is away")
	w.s3.back()
	more(30)
	require.Eventually(t, func() bool { return w.open() <= 24 }, 2*patience, 100*time.Millisecond)
	open := w.open()
	w.postgres.Stop()
	time.Sleep(databaseAway)
	require.NoError(t, w.postgres.Start())
	more(10)
	back := time.Now()
	w.settle(20 * time.Minute)
	t.Logf("%s away for %s with %d tasks and callbacks open (%d at its end), PostgreSQL for %s with %d: %d of %d tasks done and charged once, no attempt counted, all callbacks delivered, %s after the last outage; %d requests were made again",
		w.s3.name, s3Away, begun, during, databaseAway, open, n, n, time.Since(back).Round(time.Second), w.refused)
}

// TestChaos kills servers, workers, PostgreSQL and S3 at random while customers
// submit: every task is done once, and the ledger is exact. It takes three
// minutes; OTOGRAPH_CHAOS sets another duration, and OTOGRAPH_CHAOS_GAP the
// time between two faults. The memory of a server that is never killed stays
// constant.
func TestChaos(t *testing.T) {
	long, gap := length(t, "OTOGRAPH_CHAOS", 3*time.Minute), length(t, "OTOGRAPH_CHAOS_GAP", 4*time.Second)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	w := newTown(t)
	pid := w.servers[1].cmd.Process.Pid
	ctx, cancel := context.WithTimeout(t.Context(), long+10*time.Minute)
	defer cancel()
	end := time.Now().Add(long)
	failed := make(chan error, 4)
	var customers sync.WaitGroup
	for c := range cap(failed) {
		customers.Go(func() {
			for n := c; time.Now().Before(end); n += cap(failed) {
				if err := w.submit(ctx, n); err != nil {
					failed <- err
					return
				}
				time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond)
			}
		})
	}
	faults := map[string]int{}
	var memory []int64
	for time.Now().Before(end) {
		time.Sleep(time.Duration(random.Int64N(int64(2 * gap))))
		w.fault(random, faults)
		memory = append(memory, residentSet(t, pid))
	}
	customers.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	w.settle(20 * time.Minute)
	third := len(memory) / 3
	most := func(part []int64) (m int64) {
		for _, x := range part {
			m = max(m, x)
		}
		return m
	}
	if third >= 10 {
		assert.Less(t, most(memory[2*third:]), most(memory[:2*third])+32<<20, "memory is flat")
	}
	t.Logf("%s of chaos on PostgreSQL and %s, faults %v: %d of %d tasks done and charged once, %d requests were made again, %d claims; a spared server took at most %.1f MiB in the first two thirds and %.1f MiB in the last",
		long, w.s3.name, faults, len(w.ids), len(w.ids), w.refused, count(t, w.d, "SELECT SUM(attempt) FROM tasks"), float64(most(memory[:2*third+1]))/(1<<20), float64(most(memory[2*third:]))/(1<<20))
}

// fault stops one or two components simultaneously, and restarts them after
// some seconds.
func (w *town) fault(random *rand.Rand, counts map[string]int) {
	t := w.t
	var back []func()
	things := []string{"worker", "server", "postgres", "s3", "worker"}
	random.Shuffle(len(things), func(i, j int) { things[i], things[j] = things[j], things[i] })
	pick := things[:1+random.IntN(2)]
	counts[strings.Join(pick, " and ")]++
	serverDown := false
	for _, thing := range pick {
		switch thing {
		case "worker":
			n := random.IntN(len(w.workers))
			_ = w.workers[n].Process.Kill()
			_ = w.workers[n].Wait()
			back = append(back, func() { w.workers[n] = w.work() })
		case "server":
			w.servers[0].kill()
			serverDown = true
		case "postgres":
			w.postgres.Stop()
			back = append(back, func() { require.NoError(t, w.postgres.Start()) })
		case "s3":
			w.s3.leave()
			back = append(back, w.s3.back)
		}
	}
	time.Sleep(time.Duration(random.IntN(8000)) * time.Millisecond)
	for _, f := range back {
		f()
	}
	if serverDown {
		next := w.servers[0].again()
		w.mu.Lock()
		w.servers[0] = next
		w.mu.Unlock()
	}
}
