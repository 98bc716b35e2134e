package tasks_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// BenchmarkLife takes tasks through their whole life without an engine: create
// (an upload), claim, complete with a result. It reports tasks a second, bytes
// that a finished task leaves in the database, and bytes written to
// PostgreSQL's write-ahead log, without page images. Ten clients with an
// account each work at the same time.
func BenchmarkLife(b *testing.B) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			const clients = 10
			d := open(b, db.Options{MaxConns: 2 * clients})
			f := taskstest.New(b, d)
			accounts := make(chan string, clients)
			for i := range clients {
				accounts <- f.NewAccount("client "+string(rune('a'+i)), 100_000_000)
			}
			result := spec.Result{Ran: spec.Capabilities{ASR: true}, Language: "en", Segments: []spec.Segment{{End: 3, Text: "hello"}}}
			before, logged := size(b, d), written(b, d)
			b.SetParallelism(max(1, clients/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(p *testing.PB) {
				account := <-accounts
				defer func() { accounts <- account }()
				for p.Next() {
					_, _, err := f.Create(b.Context(), f.Request(func(r *tasks.Request) {
						r.Account = account
					}), tasks.Idempotency{})
					if err != nil {
						b.Error(err)
						return
					}
					c, err := f.Next(b.Context(), "w", "m")
					for err == nil && c == nil {
						c, err = f.Next(b.Context(), "w", "m") // other clients were claiming at that moment
					}
					if err != nil {
						b.Error(c, err)
						return
					}
					if err := f.Complete(b.Context(), c, tasks.Outcome{Result: result, Seconds: 3}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
			b.ReportMetric(float64(size(b, d)-before)/float64(b.N), "B/task")
			b.ReportMetric(float64(written(b, d)-logged)/float64(b.N), "WAL-B/task")
		})
	}
}

// size returns the size of a database in bytes.
func size(b *testing.B, d *db.DB) (n int64) {
	b.Helper()
	if d.Dialect() == db.Postgres {
		if err := d.Read().QueryRowContext(context.Background(), "SELECT pg_database_size(current_database())").Scan(&n); err != nil {
			b.Fatal(err)
		}
		return n
	}
	var pages, page int64
	if err := d.Read().QueryRowContext(context.Background(), "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").Scan(&pages, &page); err != nil {
		b.Fatal(err)
	}
	return pages * page
}

// written returns the number of bytes that PostgreSQL has written to its
// write-ahead log.
func written(b *testing.B, d *db.DB) (n int64) {
	b.Helper()
	if d.Dialect() == db.Postgres {
		if err := d.Read().QueryRowContext(context.Background(), "SELECT CAST(pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bigint)").Scan(&n); err != nil {
			b.Fatal(err)
		}
	}
	return n
}
