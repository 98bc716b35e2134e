//go:build long

package tasks_test

import (
	"io"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestThreeMillionFinishedTasks logs the time of metrics and lists with three
// million finished tasks of 1,000 accounts, a third of them in one account, and
// 10,000 waiting tasks.
func TestThreeMillionFinishedTasks(t *testing.T) {
	d := dbtest.Postgres(t, db.Options{Timeout: 10 * time.Minute})
	f := taskstest.New(t, d)
	f.Exec("INSERT INTO accounts (id, name, created_at) SELECT 'account-' || i, 'account-' || i, 0 FROM generate_series(1, 999) i")
	f.Exec("ALTER TABLE tasks DISABLE TRIGGER USER") // the sums are computed in one statement below
	const insert = `INSERT INTO tasks (id, account_id, status, phase, lane, run_at, queued_at, claimed_at, finished_at, audio_filename, audio_source_type, audio_url,
		allow_training, options, batch_mode, price_id, audio_seconds, created_at, updated_at) `
	for million := range 3 {
		f.Exec(insert+`SELECT gen_random_uuid()::text, CASE WHEN i % 3 = 0 THEN $1::text ELSE 'account-' || (1 + i % 999) END,
			CASE WHEN i % 50 = 0 THEN 'failed' WHEN i % 51 = 0 THEN 'abandoned' ELSE 'done' END, 'final', 'tasks', 0, $2::bigint + i, $2::bigint + i, $2::bigint + i + 1000000,
			'a.wav', 'url', 'https://source.example/a.wav', FALSE, '{}', FALSE, 1, 60, $2::bigint + i, $2::bigint + i + 1000000 FROM generate_series(1, 1000000) i`,
			f.Account, int64(million)*1_000_000+db.Micros(time.Now().Add(-time.Hour)))
	}
	f.Exec(insert+`SELECT gen_random_uuid()::text, 'account-' || (1 + i % 999), 'processing', 'queued', 'tasks', 0, $1::bigint + i, NULL, NULL, 'a.wav', 'url',
		'https://source.example/a.wav', FALSE, '{}', FALSE, 1, NULL, $1::bigint + i, $1::bigint + i FROM generate_series(1, 10000) i`, db.Micros(time.Now()))
	f.Exec("ALTER TABLE tasks ENABLE TRIGGER USER")
	f.Exec("INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE phase = 'queued' GROUP BY lane, account_id")
	begun := time.Now()
	mended, err := f.Billing().Check(t.Context(), true)
	require.NoError(t, err)
	require.NotEmpty(t, mended)
	t.Logf("check that corrects %d sums: %s", len(mended), time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	mended, err = f.Billing().Check(t.Context(), true)
	require.NoError(t, err)
	require.Empty(t, mended)
	t.Logf("check that finds nothing: %s", time.Since(begun).Round(time.Millisecond))
	vacuum(t, d)

	st, err := f.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 10_000, st.Tasks.Waiting)
	assert.Equal(t, 60_000, st.TasksByFinalState[tasks.StatusFailed])
	sum := 0
	for _, n := range st.TasksByFinalState {
		sum += n
	}
	assert.Equal(t, 3_000_000, sum)
	m := metrics.New(f.Stats)
	t.Logf("GET /metrics: median %s", median(func() {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		_, _ = io.Copy(io.Discard, w.Body)
	}))
	for _, filter := range []tasks.Filter{{Page: billing.Page{Number: 1, Size: 20}}, {Page: billing.Page{Number: 1000, Size: 100}}, {Page: billing.Page{Number: 9000, Size: 100}}, {Status: tasks.StatusFailed, Page: billing.Page{Number: 1, Size: 20}}, {Status: tasks.StatusFailed, Page: billing.Page{Number: 100, Size: 100}}} {
		list, total, err := f.List(t.Context(), f.Account, filter)
		require.NoError(t, err)
		require.Len(t, list, filter.Size)
		t.Logf("list %+v of %d: median %s", filter, total, median(func() {
			_, _, err := f.List(t.Context(), f.Account, filter)
			require.NoError(t, err)
		}))
	}
}

// median returns the median time of 15 calls.
func median(call func()) time.Duration {
	times := make([]time.Duration, 15)
	for i := range times {
		begun := time.Now()
		call()
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	return times[len(times)/2].Round(10 * time.Microsecond)
}
