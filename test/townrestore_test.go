//go:build town

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestRestoreWithTasksInAllStates dumps PostgreSQL and copies a bucket on
// versitygw with tasks in all states, lets the service continue, destroys both,
// and restores them: every task of the dump exists, unfinished ones are done
// again, and nothing is charged twice.
func TestRestoreWithTasksInAllStates(t *testing.T) {
	s3 := newS3(t)
	if s3.folder == "" {
		t.Skip("versitygw is not installed: the bucket has no folder to copy")
	}
	source, out := dbtest.PostgresSource(t), newCustomer(t)
	audio := clip(t, 8, 1.5)
	out.files["/talk.wav"] = audio
	out.fail["/refusing"] = true
	s := serve(t, t.TempDir(), "--workers", "1", "--database", source, "--blobs", s3.source, "--allow-outbound", out.host(), "--keep-audio", "24h").unlimited()
	s.must("account", "credit", "local", "1000")
	d := s.store()
	link := map[string]any{"audio_url": out.URL + "/talk.wav", "options": quick}

	states := map[string]string{} // id to the state in the dump
	add := func(state string, body map[string]any) (id string) {
		t.Helper()
		id = s.create(body)
		states[id] = state
		return id
	}
	done := add("done", upload(audio, quick, "callback_url", out.URL+"/hook"))
	s.wait(done)
	refused := add("done", upload(audio, quick, "callback_url", out.URL+"/refusing"))
	s.wait(refused)
	gone := add("failed", map[string]any{"audio_url": out.URL + "/gone.wav", "options": quick})
	s.wait(gone)
	retried := add("retrying", map[string]any{"audio_url": out.URL + "/broken.wav", "options": quick})
	park(t, d, retried)
	for _, lane := range []string{"tasks", "batch"} {
		s.must("queue", "pause", lane)
	}
	add("waiting", upload(audio, quick, "callback_url", out.URL+"/hook"))
	add("waiting", upload(audio, quick))
	add("waiting", link)
	add("waiting", map[string]any{"audio_url": out.URL + "/talk.wav", "options": quick, "batch_mode": true})
	require.Eventually(t, func() bool {
		return count(t, d, "SELECT COUNT(*) FROM tasks WHERE lane = 'fetch' AND phase <> 'final' AND id <> $1", retried) == 0
	}, patience, patience/100,
		"both are downloaded")
	s.must("queue", "pause", "fetch")
	add("waiting", link) // is not downloaded
	s.must("queue", "cancel", add("failed", upload(audio, quick)))

	dump, copied := filepath.Join(t.TempDir(), "otograph.dump"), filepath.Join(t.TempDir(), "bucket")
	postgres(t, "pg_dump", "--format=custom", "--file="+dump, "--dbname="+source)
	run := func(program string, args ...string) {
		t.Helper()
		text, err := exec.Command(program, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", program, text)
	}
	run("cp", "-a", s3.folder, copied)
	resume := func() {
		t.Helper()
		for _, lane := range []string{"fetch", "tasks", "batch"} {
			s.must("queue", "pause", lane, "--undo")
		}
		for id, state := range states {
			if state == "waiting" {
				require.Equal(t, "done", s.wait(id)["status"])
			}
		}
	}
	resume() // the lost time

	s.kill()
	s3.leave()
	require.NoError(t, os.RemoveAll(s3.folder))
	postgres(t, "psql", "--quiet", "--dbname="+source, "--command=DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	postgres(t, "pg_restore", "--dbname="+source, "--single-transaction", dump)
	run("cp", "-a", copied, s3.folder)
	s3.back()
	said := s.must("restore", "--blobs", s3.source)
	assert.Contains(t, said, "10 tasks restored, 6 of them unfinished")
	assert.NotContains(t, said, "gone")
	exact(t, s.store())

	s = s.again()
	resume()
	d = s.store()
	for id, state := range states {
		task := s.task(id)
		switch state {
		case "retrying":
			assert.Equal(t, "failed", task["status"], state)
			assert.Nil(t, task["finished_at"], state)
		case "failed":
			assert.Equal(t, "failed", task["status"], state)
			assert.NotNil(t, task["finished_at"], state)
		default:
			assert.Equal(t, "done", task["status"], state)
			assert.Equal(t, id, s.result(id)["task_id"], state)
		}
	}
	exact(t, d)
	assert.Equal(t, len(states), count(t, d, "SELECT COUNT(*) FROM tasks"))
	assert.Equal(t, 7, count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"), "one for each done task")
	assert.Len(t, out.callbacks(done), 1, "delivered before the dump, not again")
	t.Logf("%d tasks in the dump on PostgreSQL and %s (2 done, 2 ended without a charge, 1 between attempts, 5 waiting): all there after the restoration, 7 done and charged once", len(states), s3.name)
}
