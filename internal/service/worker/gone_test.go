package worker_test

import (
	"net/http"
	"net/http/httptest"
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
)

// TestTaskWithoutItsAudioFails: a task whose audio is no longer in the store
// fails at the first attempt, without a charge. If the store has also lost its
// identity, the audio may still exist, and the task is retried.
func TestTaskWithoutItsAudioFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		emptyAudio := f.Audio("x")
		empty := f.Add(func(r *tasks.Request) { r.Audio = emptyAudio })
		require.NoError(t, f.Config.Blobs.Delete(t.Context(), emptyAudio.Key))
		stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
		require.Eventually(t, func() bool {
			return f.Count("SELECT COUNT(*) FROM tasks WHERE id = $1 AND attempt > 0 AND phase <> 'running'", empty.ID) == 1
		}, 20*time.Second, 20*time.Millisecond)
		stop()
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks WHERE phase <> 'final'"), "it is retried")

		_, err := f.Config.Blobs.Adopt(t.Context(), blob.Identity{Database: "this"})
		require.NoError(t, err)
		goneAudio := f.Audio("x")
		gone := f.Add(func(r *tasks.Request) { r.Audio = goneAudio })
		require.NoError(t, f.Config.Blobs.Delete(t.Context(), goneAudio.Key))
		stop = f.Start(1, worker.Config{Engine: taskstest.Quick})
		task := f.WaitFor(gone.ID)
		stop()
		assert.Equal(t, tasks.StatusFailed, task.Status)
		require.NotNil(t, task.ErrorMessage)
		assert.Contains(t, *task.ErrorMessage, "audio gone")
		assert.Equal(t, 1, f.Count("SELECT attempt FROM tasks WHERE id = $1", gone.ID))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM holds WHERE task_id = $1", gone.ID))
	})
}

// TestDamagedAudioIsNotTranscribed: a recording that was truncated in the store
// is not transcribed and charged as if it were complete. An upload fails; audio
// with a URL is downloaded again.
func TestDamagedAudioIsNotTranscribed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5000)) }))
		defer source.Close()
		stop := f.StartFetcher(worker.FetcherConfig{HTTP: source.Client()})
		fetched := f.Add(func(r *tasks.Request) { r.URL = source.URL + "/x.wav" })
		require.Eventually(t, func() bool {
			return f.Count("SELECT COUNT(*) FROM tasks WHERE lane = 'tasks' AND phase = 'queued'") == 1
		}, 10*time.Second, 5*time.Millisecond)
		stop()
		uploaded := f.Add(func(r *tasks.Request) { r.Audio = f.Audio("the whole recording") })
		for _, key := range f.Files() {
			w, err := f.Config.Blobs.Create(t.Context(), key)
			require.NoError(t, err)
			_, err = w.Write([]byte("the"))
			require.NoError(t, err)
			_, err = w.Commit()
			require.NoError(t, err)
		}
		f.Start(1, worker.Config{Engine: taskstest.Quick})
		task := f.WaitFor(uploaded.ID)
		assert.Equal(t, tasks.StatusFailed, task.Status)
		require.NotNil(t, task.ErrorMessage)
		assert.Equal(t, "audio damaged: the service no longer has the recording as it was submitted, please submit it again; nothing is charged", *task.ErrorMessage)
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM holds WHERE task_id = $1", uploaded.ID))
		f.StartFetcher(worker.FetcherConfig{HTTP: source.Client()})
		assert.Equal(t, tasks.StatusDone, f.WaitFor(fetched.ID).Status)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
		assert.Zero(t, f.Count("SELECT SUM(failures) FROM tasks"))
	})
}

// TestMissingVoicesFailTheTask: a task whose recordings of known speakers are
// no longer in the store fails at the first attempt, like a task without its
// audio.
func TestMissingVoicesFailTheTask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		_, err := f.Config.Blobs.Adopt(t.Context(), blob.Identity{Database: "this"})
		require.NoError(t, err)
		gone := f.Add(func(r *tasks.Request) { r.Extras.Voices = []string{"Ann"} })
		f.Start(1, worker.Config{Engine: taskstest.Quick})
		task := f.WaitFor(gone.ID)
		assert.Equal(t, tasks.StatusFailed, task.Status)
		require.NotNil(t, task.ErrorMessage)
		assert.Contains(t, *task.ErrorMessage, "recordings of the known speakers are gone")
		assert.Equal(t, 1, f.Count("SELECT attempt FROM tasks WHERE id = $1", gone.ID))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	})
}
