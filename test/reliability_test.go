package test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// tidy runs the clean-up on a stopped service and returns the unreferenced
// files before and after it.
func tidy(t *testing.T, d *db.DB, folder string) (before, after []string) {
	t.Helper()
	blobs, err := blob.Open(t.Context(), folder)
	require.NoError(t, err)
	defer blobs.Close()
	svc, err := tasks.New(tasks.Config{DB: d, Blobs: blobs})
	require.NoError(t, err)
	orphans := func() (found []string) {
		for _, name := range files(t, folder) {
			if strings.HasSuffix(name, ".attrs") || name == "otograph-store.json" {
				continue
			}
			if count(t, d, "SELECT COUNT(*) FROM tasks WHERE audio_blob = $1 OR result_blob = $1", name) == 0 {
				found = append(found, name)
			}
		}
		return found
	}
	before = orphans()
	taskstest.Tidy(t, svc)
	return before, orphans()
}

// T1: workers and the serving process, which supervises them, are killed with
// SIGKILL at random moments while tasks run.
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	out := newCustomer(t)
	s := serve(t, t.TempDir(), "--allow-outbound", out.host()).unlimited()
	audio := clip(t, 8, 1.5)
	var ids []string
	workersKilled, serversKilled := 0, 0
	moments := kills
	if testing.Short() {
		moments = 3
	}
	for n := range moments {
		for range 2 {
			ids = append(ids, s.create(upload(audio, quick, "callback_url", out.URL+"/hook")))
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		if n%3 == 2 {
			s.kill()
			s = s.again()
			serversKilled++
		} else {
			workersKilled += killWorkers(t, s.cmd.Process.Pid)
		}
	}
	for _, id := range ids {
		require.Equal(t, "done", s.wait(id)["status"], "seed %d\n%s", seed, s.logged())
	}
	d := s.store()
	require.Eventually(t, func() bool { return count(t, d, "SELECT COUNT(*) FROM callbacks WHERE phase <> 'delivered'") == 0 }, patience, 50*time.Millisecond)
	require.NoError(t, s.stop())
	exact(t, d)
	assert.Equal(t, len(ids), count(t, d, "SELECT COUNT(*) FROM tasks"))
	assert.Equal(t, len(ids), count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	deliveries := 0
	for _, id := range ids {
		calls := out.callbacks(id)
		require.NotEmpty(t, calls)
		deliveries += len(calls)
		for _, c := range calls {
			assert.Equal(t, calls[0].header.Get("Webhook-Id"), c.header.Get("Webhook-Id"))
			assert.Equal(t, calls[0].body, c.body)
		}
	}
	before, after := tidy(t, d, filepath.Join(s.data, "blobs"))
	assert.Empty(t, after)
	again := count(t, d, "SELECT COUNT(*) FROM tasks WHERE attempt > 1")
	t.Logf("T1: seed %d: %d workers and %d serving processes killed; %d of %d tasks done once (%d ran again), %d charges, %d deliveries of %d callbacks; %d orphaned files before the clean-up, %d after",
		seed, workersKilled, serversKilled, len(ids), len(ids), again, len(ids), deliveries, len(ids), len(before), len(after))
}

// T2: a small disk under the data folder becomes full and then has space again.
func TestServiceSurvivesFullDisk(t *testing.T) {
	t.Parallel()
	fullDisk(t, "T2: 32 MB disk", "size=32m", func(folder string) (func() error, error) {
		ballast := filepath.Join(folder, "ballast")
		return func() error { return os.Remove(ballast) }, os.WriteFile(ballast, make([]byte, 8<<20), 0o600)
	})
}

// T28: a small inode table becomes full and then has space again.
func TestServiceSurvivesFullInodeTable(t *testing.T) {
	t.Parallel()
	fullDisk(t, "T28: 100 inodes", "nr_inodes=100", func(folder string) (func() error, error) {
		ballast := filepath.Join(folder, "ballast")
		err := os.Mkdir(ballast, 0o700)
		for i := range 50 {
			err = errors.Join(err, os.WriteFile(filepath.Join(ballast, fmt.Sprint(i)), nil, 0o600))
		}
		return func() error { return os.RemoveAll(ballast) }, err
	})
}

// fullDisk submits to a service on a small tmpfs until it is full, and again
// after fill's data is removed.
func fullDisk(t *testing.T, name, options string, fill func(folder string) (clear func() error, err error)) {
	data := t.TempDir()
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a tmpfs needs privileges: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(data, 0)) })
	s := serve(t, data, "--workers", "0").unlimited()
	d := s.store()
	clear, err := fill(data)
	require.NoError(t, err)
	body := upload(clip(t, 0, 50), quick) // 1.6 MB
	accepted, refused := 0, 0
	for refused < 5 && accepted < 200 {
		a := s.do("POST", "/tasks", body)
		switch a.status {
		case 201:
			accepted++
		case 503, 507:
			a.code(t)
			refused++
		default:
			t.Fatalf("%d %s", a.status, a.body)
		}
		assert.Equal(t, 200, s.do("GET", "/account", nil).status, "requests that need no space still work")
	}
	require.Equal(t, 5, refused, "the disk never was full")
	require.NoError(t, clear())
	require.Eventually(t, func() bool { return s.do("POST", "/tasks", body).status == 201 }, patience, 100*time.Millisecond, "there is room again")
	exact(t, d)
	assert.EqualValues(t, s.do("GET", "/tasks", nil).object(t)["total"], count(t, d, "SELECT COUNT(*) FROM tasks"))
	require.NoError(t, s.stop())
	before, after := tidy(t, d, filepath.Join(data, "blobs"))
	assert.Empty(t, before, "nothing half written")
	assert.Empty(t, after)
	require.NoError(t, d.Close())
	t.Logf("%s: %d tasks accepted, %d refused with 503 or 507 in JSON, 0 files half written, accepted again when there was room", name, accepted, refused)
}

// T3: PostgreSQL stops and restarts.
func TestServiceSurvivesPostgreSQLOutage(t *testing.T) {
	t.Parallel()
	if dbtest.Programs() == "" {
		t.Skip("PostgreSQL's server programs are not installed (Debian: apt-get install postgresql)")
	}
	pg, err := dbtest.StartServer()
	require.NoError(t, err)
	t.Cleanup(pg.Close)
	s := serve(t, t.TempDir(), "--database", pg.Source("postgres")).unlimited()
	audio := clip(t, 8, 1.5)
	var ids []string
	for range 8 {
		ids = append(ids, s.create(upload(audio, quick)))
	}
	pg.Stop()
	refused := 0
	for begun := time.Now(); time.Since(begun) < outage; time.Sleep(100 * time.Millisecond) {
		for _, q := range []struct {
			method, path string
			body         any
		}{{"GET", "/tasks/" + ids[0], nil}, {"POST", "/tasks", upload(audio, quick)}, {"GET", "/account", nil}} {
			a := s.do(q.method, q.path, q.body)
			assert.Equal(t, 503, a.status, "%s", a.body)
			a.code(t)
			refused++
		}
		assert.Equal(t, 200, s.do("GET", "//healthz", nil).status)
	}
	// /readyz caches its response briefly, so that probes cost little.
	assert.Eventually(t, func() bool { return s.do("GET", "//readyz", nil).status == 503 }, patience, 100*time.Millisecond)
	require.NoError(t, pg.Start())
	require.Eventually(t, func() bool { return s.do("GET", "/account", nil).status == 200 }, patience, 50*time.Millisecond)
	for _, id := range ids {
		require.Equal(t, "done", s.wait(id)["status"], s.logged())
	}
	d := s.store()
	exact(t, d)
	lost := count(t, d, "SELECT COALESCE(SUM(failures), 0) FROM tasks")
	assert.Zero(t, lost)
	t.Logf("T3: PostgreSQL away for %s: %d requests answered 503 in JSON, %d of %d tasks done afterwards, %d attempts lost", outage, refused, len(ids), len(ids), lost)
	require.NoError(t, d.Close())
	require.NoError(t, s.stop())
}

// T3: another process holds SQLite's write lock.
func TestServiceSurvivesSQLiteLock(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir()).unlimited()
	d := s.store()
	audio := clip(t, 8, 1.5)
	ids := []string{s.create(upload(audio, quick)), s.create(upload(audio, quick))}
	held, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- d.Write(context.Background(), func(tx *sql.Tx) error {
			_, err := tx.Exec("UPDATE secrets SET value = value") // takes the lock without changing anything
			close(held)
			time.Sleep(outage)
			return err
		})
	}()
	<-held
	read, waited := 0, 0
	for begun := time.Now(); time.Since(begun) < outage/2; time.Sleep(50 * time.Millisecond) {
		assert.Equal(t, 200, s.do("GET", "/tasks/"+ids[0], nil).status, "readers do not wait")
		read++
	}
	a := s.do("POST", "/tasks", upload(audio, quick))
	switch a.status {
	case 201:
		waited++
		id, _ := a.object(t)["id"].(string)
		ids = append(ids, id)
	case 503:
		a.code(t)
	default:
		t.Errorf("%d %s", a.status, a.body)
	}
	require.NoError(t, <-done)
	for _, id := range ids {
		require.Equal(t, "done", s.wait(id)["status"], s.logged())
	}
	exact(t, d)
	t.Logf("T3: SQLite locked for %s: %d reads answered meanwhile, %d submission waited, %d tasks done afterwards", outage, read, waited, len(ids))
}

// T5: an input that kills the process working on it, each time.
func TestPoisonedTaskIsAbandoned(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir()).unlimited()
	d := s.store()
	poison := s.create(upload(clip(t, 0, 60), map[string]any{"optimize": false}))
	var healthy []string
	for range 3 {
		healthy = append(healthy, s.create(upload(clip(t, 8, 1.5), quick)))
	}
	crashes := 0
	for deadline := time.Now().Add(patience); s.task(poison)["finished_at"] == nil; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), s.logged())
		// The kill simulates a decoder that a file crashes; the scheduled
		// retries are moved forward.
		var pid int
		err := d.Read().QueryRowContext(t.Context(), "SELECT w.pid FROM tasks t JOIN workers w ON w.id = t.worker_id WHERE t.id = $1 AND t.phase = 'running'", poison).Scan(&pid)
		if err == nil && syscall.Kill(pid, syscall.SIGSEGV) == nil {
			crashes++
			require.Eventually(t, func() bool {
				return count(t, d, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'running'", poison) == 0
			}, patience, 10*time.Millisecond)
			change(t, d, "UPDATE tasks SET run_at = 0 WHERE id = $1 AND phase IN ('queued', 'delayed')", poison)
		}
	}
	final := s.task(poison)
	assert.Equal(t, "abandoned", final["status"])
	assert.Contains(t, final["error_message"], "crashed the decoder")
	for _, id := range healthy {
		assert.Equal(t, "done", s.wait(id)["status"])
	}
	assert.Zero(t, count(t, d, "SELECT COALESCE(SUM(failures), 0) FROM tasks WHERE id <> $1", poison))
	exact(t, d)
	t.Logf("T5: abandoned after %d deaths of its worker (%q); %d of %d neighbors done without a lost attempt", crashes, final["error_message"], len(healthy), len(healthy))
}

// T7: the service processes the corpus of broken files.
func TestBrokenFilesThroughTheService(t *testing.T) {
	t.Parallel()
	listing, err := os.ReadFile("../audio/testdata/bad/manifest.jsonl")
	require.NoError(t, err)
	s := serve(t, t.TempDir()).unlimited()
	warm := s.create(upload(clip(t, 8, 1.5), quick))
	require.Equal(t, "done", s.wait(warm)["status"])
	before := workers(t, s.cmd.Process.Pid)
	require.NotEmpty(t, before)
	type sent struct{ file, expect, id string }
	var all []sent
	refused := 0
	for i, line := range strings.Split(strings.TrimSpace(string(listing)), "\n") {
		var m struct{ File, Expect string } // Expect: error, partial, ok, or several of them
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if m.File == "" || i%corpusStride != 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join("../audio/testdata/bad", m.File))
		require.NoError(t, err)
		a := s.do("POST", "/tasks", map[string]any{"audio_filename": m.File, "audio_base64": base64.StdEncoding.EncodeToString(data), "options": quick})
		if a.status != 201 {
			refusal(t, a, 400, "invalid_request")
			assert.Contains(t, m.Expect, "error", m.File)
			refused++
			continue
		}
		id, _ := a.object(t)["id"].(string)
		all = append(all, sent{m.File, m.Expect, id})
	}
	ends := map[string]int{}
	for _, f := range all {
		task := s.wait(f.id)
		status, _ := task["status"].(string)
		ends[status]++
		switch f.expect {
		case "error":
			assert.Equal(t, "failed", status, f.file)
		case "ok":
			assert.Equal(t, "done", status, "%s: %v", f.file, task["error_message"])
		}
		if status != "done" {
			message, _ := task["error_message"].(string)
			assert.NotEmpty(t, message, f.file)
			assert.NotContains(t, message, s.data, f.file)
			assert.Equal(t, "failed", status, "%s: %s", f.file, message)
		}
	}
	assert.Subset(t, workers(t, s.cmd.Process.Pid), before, "no worker died")
	assert.NotContains(t, s.logged(), "worker process is replaced")
	exact(t, s.store())
	t.Logf("T7: %d broken files: %d refused at once, then %v; no process died", len(all)+refused, refused, ends)
}

// T19: the service is stopped under load.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir()).unlimited()
	audio := clip(t, 8, 1.5)
	var mu sync.Mutex
	var accepted []string
	var unanswered, refused atomic.Int64
	var wait sync.WaitGroup
	ending := make(chan struct{})
	for range 4 {
		wait.Go(func() {
			for {
				a, err := s.try("POST", "/tasks", upload(audio, quick))
				switch {
				case errors.Is(err, syscall.ECONNREFUSED):
					return
				case err != nil:
					select {
					case <-ending: // a connection that was closed between two requests
						refused.Add(1)
					default:
						unanswered.Add(1)
					}
					return
				case a.status == 201:
					mu.Lock()
					accepted = append(accepted, a.object(t)["id"].(string))
					mu.Unlock()
				default:
					a.code(t)
				}
				time.Sleep(250 * time.Millisecond)
			}
		})
	}
	time.Sleep(2 * time.Second)
	close(ending)
	begun := time.Now()
	require.NoError(t, s.stop(), s.logged())
	took := time.Since(begun)
	wait.Wait()
	assert.Zero(t, unanswered.Load())
	d := s.store()
	assert.Zero(t, count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase = 'running'"))
	assert.Zero(t, count(t, d, "SELECT COALESCE(SUM(failures + interruptions), 0) FROM tasks"), "handed back uncounted")
	assert.GreaterOrEqual(t, count(t, d, "SELECT COUNT(*) FROM tasks"), len(accepted))
	done := count(t, d, "SELECT COUNT(*) FROM tasks WHERE status = 'done'")
	s = s.again()
	for _, id := range accepted {
		require.Equal(t, "done", s.wait(id)["status"])
	}
	exact(t, d)
	t.Logf("T19: ended in %.1f s with %d tasks accepted, %d of them done; %d connections closed between requests, none unanswered; all done after the next start", took.Seconds(), len(accepted), done, refused.Load())
}

// T20: stop and start: every state is as before, also when several processes
// migrate the tables simultaneously.
func TestRestartKeepsEveryState(t *testing.T) {
	t.Parallel()
	out := newCustomer(t)
	s := serve(t, t.TempDir(), "--allow-outbound", out.host()).unlimited()
	ids := []string{s.create(upload(clip(t, 8, 1.5), quick)), s.create(map[string]any{"audio_url": out.URL + "/gone.wav"}), s.create(map[string]any{"audio_url": out.URL + "/broken.wav"})}
	s.wait(ids[0])
	s.wait(ids[1])
	d := s.store()
	require.Eventually(t, func() bool { return s.task(ids[2])["status"] == "failed" }, patience, 20*time.Millisecond)
	park(t, d, ids[2])
	require.NoError(t, s.stop())
	s.args = append(s.args, "--workers", "0", "--fetches", "0")
	s = s.again()
	ids = append(ids, s.create(upload(clip(t, 8, 1.5), quick)))
	picture := func() map[string]any {
		m := map[string]any{"list": s.do("GET", "/tasks", nil).object(t), "money": s.do("GET", "/account", nil).object(t), "ledger": s.do("GET", "/billing/transactions", nil).object(t), "result": s.result(ids[0])}
		for _, id := range ids {
			m[id] = s.task(id)
		}
		return m
	}
	before := picture()
	require.NoError(t, s.stop())
	var wait sync.WaitGroup
	stopped := s
	for range 3 {
		wait.Go(func() {
			if out, err := stopped.run("account", "list"); err != nil {
				t.Error(err, out)
			}
		})
	}
	s = stopped.again()
	wait.Wait()
	assert.Equal(t, before, picture())
	exact(t, d)
	t.Logf("T20: %d tasks (done, failed, waiting for a retry, processing), account, ledger and result are as before a restart with 3 more processes on the same file", len(ids))
}

// T24: a backup is made under load and started elsewhere.
func TestBackupStartsElsewhere(t *testing.T) {
	t.Parallel()
	out := newCustomer(t)
	s := serve(t, t.TempDir(), "--keep-audio", "1h", "--allow-outbound", out.host()).unlimited()
	audio := clip(t, 8, 1.5)
	out.files["/held.wav"] = audio
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 12 { // even a slow machine must finish all of them
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
				if a, err := s.try("POST", "/tasks", upload(audio, quick)); err != nil || a.status != 201 {
					t.Error(err, a.status)
				}
			}
		}
	})
	require.Eventually(t, func() bool {
		return len(list(s.do("GET", "/tasks?status=done", nil).object(t)["tasks"])) >= 2
	}, patience, 50*time.Millisecond)
	held := s.create(map[string]any{"audio_url": out.URL + "/held.wav", "options": quick}) // keeps its worker busy, even a fast one
	live := s.store()
	require.Eventually(t, func() bool {
		return count(t, live, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase = 'running'", held) == 1
	}, patience, 10*time.Millisecond)
	elsewhere := t.TempDir()
	s.must("backup", filepath.Join(elsewhere, "otograph.db"))
	close(stop)
	close(out.hold)
	wait.Wait()
	require.NoError(t, s.stop())
	require.NoError(t, os.CopyFS(filepath.Join(elsewhere, "blobs"), os.DirFS(filepath.Join(s.data, "blobs"))))
	restored := &server{t: t, data: elsewhere, key: s.key, args: s.args}
	d := restored.store()
	exact(t, d)
	states := map[string]int{}
	for _, phase := range []string{"queued", "running", "final"} {
		states[phase] = count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase = $1", phase)
	}
	all := states["queued"] + states["running"] + states["final"]
	require.NotZero(t, states["running"], "the copy was taken under load")
	restored = restored.again()
	require.Eventually(t, func() bool { return count(t, d, "SELECT COUNT(*) FROM tasks WHERE status = 'done'") == all }, patience, 100*time.Millisecond, "%s", restored.logged())
	exact(t, d)
	t.Logf("T24: copy under load with %d queued, %d running and %d final tasks; %d of %d done on the restored copy", states["queued"], states["running"], states["final"], all, all)
}

// T28: the process runs out of file descriptors and then has some again.
func TestServiceSurvivesDescriptorExhaustion(t *testing.T) {
	t.Parallel()
	s := serveUnder(t, t.TempDir(), []string{"/bin/sh", "-c", `ulimit -n 90; exec "$0" "$@"`, binary}, "--workers", "0").unlimited()
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/v1")
	var held []net.Conn
	for range 150 {
		if c, err := net.DialTimeout("tcp", addr, 20*time.Second); err == nil {
			held = append(held, c)
		}
	}
	require.Greater(t, len(held), 90)
	fresh := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	failed := 0
	for range 3 {
		res, err := fresh.Get("http://" + addr + "/healthz")
		if err != nil {
			failed++
			continue
		}
		res.Body.Close()
	}
	assert.NotZero(t, failed, "there was none left")
	for _, c := range held {
		c.Close()
	}
	fresh.Timeout = time.Minute
	require.Eventually(t, func() bool {
		res, err := fresh.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == 200
	}, patience, 100*time.Millisecond)
	refused := 0
	require.Eventually(t, func() bool {
		a := s.do("POST", "/tasks", upload(clip(t, 8, 1.5), quick))
		if a.status == 503 {
			a.code(t)
			refused++
		}
		return a.status == 201
	}, patience, 100*time.Millisecond, "%s", s.logged())
	assert.EqualValues(t, 1, s.do("GET", "/tasks", nil).object(t)["total"])
	exact(t, s.store())
	t.Logf("T28: 90 descriptors, %d connections held: %d of 3 requests got no answer; all well after they were closed (%d submissions answered 503 first)", len(held), failed, refused)
}

// T33: a result of five hours with a hundred thousand words is streamed.
func TestBigResultIsStreamed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--workers", "0").unlimited()
	id := s.create(upload(clip(t, 8, 1.5), nil))
	d := s.store()
	blobs, err := blob.Open(t.Context(), filepath.Join(s.data, "blobs"))
	require.NoError(t, err)
	defer blobs.Close()
	svc, err := tasks.New(tasks.Config{DB: d, Blobs: blobs})
	require.NoError(t, err)
	one, err := worker.New(svc.Runs, worker.Config{Engine: wordy(manyWords)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- one.Run(ctx) }()
	assert.Equal(t, "done", s.wait(id)["status"])
	cancel()
	require.NoError(t, <-ended)
	var size int
	growth := peakOver(t, s.cmd.Process.Pid, func() {
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				a, err := s.try("GET", "/tasks/"+id+"/result", nil)
				if err != nil || a.status != 200 || bytes.Count(a.body, []byte(`"probability"`)) != manyWords {
					t.Error(err, a.status, len(a.body))
				}
			})
		}
		wait.Wait()
	})
	a := s.do("GET", "/tasks/"+id+"/result", nil)
	size = len(a.body)
	words := 0
	for _, segment := range list(a.object(t)["segments"]) {
		words += len(list(object(segment)["words"]))
	}
	assert.Equal(t, manyWords, words)
	assert.EqualValues(t, 18000, a.object(t)["audio_duration"])
	assert.EqualValues(t, 300, object(a.object(t)["billing"])["billable_minutes"])
	assert.Less(t, growth, int64(32<<20))
	t.Logf("T33: %d words, %.1f MB, fetched 4 times at once: resident set grew by %.1f MiB at most", words, float64(size)/1e6, float64(growth)/(1<<20))
}

// wordy is an engine that returns many words.
type wordy int

func (n wordy) ModelSet() string { return "wordy" }

func (n wordy) Run(context.Context, worker.Job) (tasks.Outcome, error) {
	r := spec.Result{Ran: spec.Capabilities{ASR: true}, Language: "en"}
	for i := range int(n) {
		if i%20 == 0 {
			r.Segments = append(r.Segments, spec.Segment{ID: i / 20, Start: float64(i) + 0.01, End: float64(i) + 19.99})
		}
		words := &r.Segments[i/20].Words
		*words = append(*words, spec.Word{Word: fmt.Sprint("word", i), Start: float64(i) + 0.125, End: float64(i) + 0.5, Probability: float64(1000+i%9000) / 1e4})
	}
	return tasks.Outcome{Result: r, Tier: spec.TierStandard, Seconds: 18000}, nil
}

// T34: a container states a wrong length, either greater or smaller.
func TestWrongContainerLengthIsBilledAsDecoded(t *testing.T) {
	t.Parallel()
	honest, err := os.ReadFile("../testdata/conversation.flac")
	require.NoError(t, err)
	s := serve(t, t.TempDir()).unlimited()
	d := s.store()
	var told []string
	for _, declared := range []float64{1, 7200} {
		lie := bytes.Clone(honest)
		rate := uint64(lie[18])<<12 | uint64(lie[19])<<4 | uint64(lie[20])>>4 // STREAMINFO: 20 bits of rate, 36 bits of samples
		samples := uint64(declared * float64(rate))
		lie[21] = lie[21]&0xf0 | byte(samples>>32)
		for i := range 4 {
			lie[22+i] = byte(samples >> (24 - 8*i))
		}
		m := upload(lie, map[string]any{"enable_asr": false, "enable_diarize": false})
		m["audio_filename"] = "lie.flac"
		id := s.create(m)
		task := s.wait(id)
		require.Equal(t, "done", task["status"], "%v", task["error_message"])
		r := s.result(id)
		assert.InDelta(t, 60.43, r["audio_duration"], 0.01)
		assert.EqualValues(t, 2, object(r["billing"])["billable_minutes"])
		told = append(told, fmt.Sprintf("%.0f s declared, %.2f s billed as %.0f minutes", declared, r["audio_duration"], object(r["billing"])["billable_minutes"]))
	}
	exact(t, d)
	t.Logf("T34: %s", strings.Join(told, "; "))
}
