package worker_test

import (
	"testing"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// BenchmarkTinyTasks runs waiting tasks whose engine takes no time, with one
// worker and with four, from uploads and from addresses: the cost of claiming
// and ending alone.
func BenchmarkTinyTasks(b *testing.B) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		for _, c := range []struct {
			name    string
			workers int
			url     string
		}{{"uploads/1", 1, ""}, {"uploads/4", 4, ""}, {"addresses/1", 1, "https://source.example/a.wav"}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				f := taskstest.New(b, open(b, db.Options{}))
				for range b.N {
					f.Add(func(r *tasks.Request) { r.URL = c.url })
				}
				b.ResetTimer()
				if c.url != "" {
					defer f.StartFetcher(worker.FetcherConfig{HTTP: minuteSource})()
				}
				defer f.Start(c.workers, worker.Config{Engine: taskstest.Quick})()
				for f.Count("SELECT COUNT(*) FROM tasks WHERE phase = 'final'") < b.N {
					time.Sleep(2 * time.Millisecond)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
			})
		}
	}
}
