package queue_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// BenchmarkClaimFromLongQueue claims from a queue of 20,000 tasks of one
// account.
func BenchmarkClaimFromLongQueue(b *testing.B) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			f := taskstest.New(b, open(b, db.Options{}))
			f.Add(func(r *tasks.Request) { r.URL = "https://source.example/a" })
			f.Fetch()
			f.Exec(`INSERT INTO tasks (id, account_id, status, phase, lane, run_at, queued_at, audio_filename, audio_source_type, audio_url, allow_training, options, batch_mode, price_id, created_at, updated_at)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
				SELECT id || CAST(i AS text), account_id, status, phase, lane, run_at, queued_at, audio_filename, audio_source_type, audio_url, allow_training, options, batch_mode, price_id, created_at, updated_at FROM tasks, n`)
			f.Exec("UPDATE lane_accounts SET waiting = 20001")
			f.Exec("ANALYZE") // as autovacuum does
			for b.Loop() {
				if c, err := f.Next(b.Context(), "w", "m"); err != nil || c == nil {
					b.Fatal(c, err)
				}
			}
		})
	}
}

// BenchmarkClaimOfDownload claims from 20,000 downloads of one account, with
// and without a busy host to which most of them belong.
func BenchmarkClaimOfDownload(b *testing.B) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		for _, busy := range []queue.Busy{{Ahead: 1 << 30}, {Ahead: 1 << 30, Hosts: []string{"busy.example", "other.example"}}} {
			b.Run(fmt.Sprintf("%s/busy=%d", name, len(busy.Hosts)), func(b *testing.B) {
				f := taskstest.New(b, open(b, db.Options{}))
				fill(f, 1, 20_000)
				f.Exec("UPDATE tasks SET lane = 'fetch', audio_host = CASE WHEN queued_at > 10000 THEN 'idle.example' ELSE 'busy.example' END")
				f.Exec("UPDATE lane_accounts SET lane = 'fetch'")
				f.Exec("ANALYZE") // as autovacuum does
				for b.Loop() {
					if c, err := f.NextFetch(b.Context(), "f", busy); err != nil || c == nil {
						b.Fatal(c, err)
					}
				}
			})
		}
	}
}

// fill adds tasks of accounts to the queue of f.
func fill(f *taskstest.Fixture, accounts, tasks int) {
	f.T.Helper()
	series := func(n int) string { // from 1
		if f.Config.DB.Dialect() == db.Postgres {
			return fmt.Sprintf("generate_series(1, %d) AS n (i)", n)
		}
		return fmt.Sprintf("(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) n", n)
	}
	f.Exec("INSERT INTO accounts (id, name, created_at) SELECT 'account-' || CAST(i AS text), 'account-' || CAST(i AS text), 0 FROM " + series(accounts))
	f.Exec(fmt.Sprintf(`INSERT INTO tasks (id, account_id, status, phase, lane, run_at, queued_at, audio_filename, audio_source_type, audio_url, allow_training, options, batch_mode, price_id, created_at, updated_at)
		SELECT 'task-' || CAST(i AS text), 'account-' || CAST(1 + i %% %d AS text), 'processing', 'queued', 'tasks', 0, i,
		'a.wav', 'url', 'https://source.example/a', FALSE, '{"optimize":false,"enable_audio_events":false,"enable_diarize":false,"asr_language":"en"}', FALSE, 1, i, i FROM %s`,
		accounts, series(tasks)))
	f.Exec("INSERT INTO lane_accounts (lane, account_id, waiting) SELECT lane, account_id, COUNT(*) FROM tasks WHERE phase = 'queued' GROUP BY lane, account_id")
	f.Exec("ANALYZE") // as autovacuum does
}

// claimShape is a queue to claim from: tasks, of which some are delayed.
type claimShape struct {
	store                      db.Dialect
	accounts, waiting, delayed int
}

// claimers is the number of concurrent workers in BenchmarkClaim.
const claimers = 10

// BenchmarkClaim claims with 10 concurrent workers from queues of several
// shapes.
func BenchmarkClaim(b *testing.B) {
	for _, shape := range claimShapes {
		b.Run(fmt.Sprintf("%s/accounts=%d/waiting=%d/delayed=%d", shape.store, shape.accounts, shape.waiting, shape.delayed), func(b *testing.B) {
			open := dbtest.SQLite
			if shape.store == db.Postgres {
				open = dbtest.Postgres
			}
			f := taskstest.New(b, open(b, db.Options{MaxConns: 2 * claimers, Timeout: 10 * time.Minute}))
			fill(f, shape.accounts, shape.waiting)
			if shape.delayed > 0 {
				f.Exec(fmt.Sprintf("UPDATE tasks SET phase = 'delayed', run_at = %d WHERE queued_at > %d", db.Micros(time.Now().Add(time.Minute)), shape.waiting-shape.delayed))
				f.Exec("UPDATE lane_accounts SET waiting = (SELECT COUNT(*) FROM tasks t WHERE t.lane = lane_accounts.lane AND t.account_id = lane_accounts.account_id AND phase = 'queued')")
			}
			if shape.store == db.Postgres { // as autovacuum does
				for _, table := range []string{"tasks", "lane_accounts"} {
					if _, err := f.Config.DB.Read().ExecContext(b.Context(), "VACUUM ANALYZE "+table); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ResetTimer()
			begun := time.Now()
			b.SetParallelism(max(1, claimers/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if c, err := f.Next(b.Context(), "w", "m"); err != nil || c == nil {
						b.Error(c, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "claims/s")
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
