package queue_test

import (
	"testing"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/taskstest"
)

// BenchmarkClaimFromLongQueue claims from a queue of 20,000 tasks of one account.
func BenchmarkClaimFromLongQueue(b *testing.B) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			f := taskstest.New(b, open(b, db.Options{}))
			f.Add(func(r *tasks.Request) { r.URL = "https://source.example/a" })
			f.Exec(`INSERT INTO tasks (id, account_id, status, phase, lane, run_at, queued_at, audio_filename, audio_source_type, audio_url, allow_training, options, batch_mode, price_id, created_at, updated_at)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
				SELECT id || CAST(i AS text), account_id, status, phase, lane, run_at, queued_at, audio_filename, audio_source_type, audio_url, allow_training, options, batch_mode, price_id, created_at, updated_at FROM tasks, n`)
			f.Exec("ANALYZE") // as autovacuum does
			for b.Loop() {
				if c, err := f.Next(b.Context(), "w", "m"); err != nil || c == nil {
					b.Fatal(c, err)
				}
			}
		})
	}
}

// BenchmarkGet reads one task, as GET /tasks/{id} does.
func BenchmarkGet(b *testing.B) {
	f := taskstest.New(b, dbtest.SQLite(b, db.Options{}))
	task := f.Add(nil)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := f.Get(b.Context(), f.Account, task.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}
