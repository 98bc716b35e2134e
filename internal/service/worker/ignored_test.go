package worker_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestOptionsOfANewerReleaseAreNamed: a worker runs a task with stored options
// that it does not know, and names them in its log.
func TestOptionsOfANewerReleaseAreNamed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var log bytes.Buffer
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		task := f.Add(nil)
		f.Exec(`UPDATE tasks SET options = '{"enable_asr":true,"of_tomorrow":{"a":[1]},"of_later":null}' WHERE id = $1`, task.ID)
		plain := f.Add(nil)
		stop := f.Start(1, worker.Config{Engine: taskstest.Quick})
		for _, id := range []string{task.ID, plain.ID} {
			assert.Equal(t, tasks.StatusDone, f.WaitFor(id).Status)
		}
		stop()
		warning := []byte("options of a newer release are ignored")
		assert.Equal(t, 1, bytes.Count(log.Bytes(), warning), "for one task only")
		assert.Contains(t, log.String(), `task=`+task.ID+` options="[of_later of_tomorrow]"`)
	})
}
