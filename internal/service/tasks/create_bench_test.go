package tasks_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// BenchmarkCreate creates tasks in an account without other open holds, and in
// an account with 10,000.
func BenchmarkCreate(b *testing.B) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		for _, holds := range []int{0, 10_000} {
			b.Run(fmt.Sprintf("%s/holds=%d", name, holds), func(b *testing.B) {
				f := taskstest.New(b, open(b, db.Options{}))
				request := f.Request(func(r *tasks.Request) {
					r.Audio = &blob.Info{Key: "audio/" + uuid.NewString(), Size: 48000, MD5: "d41d8cd98f00b204e9800998ecf8427e"} // the file itself is not read
					r.Seconds = 1.5
				})
				for range holds {
					_, _, err := f.Create(b.Context(), request, tasks.Idempotency{})
					require.NoError(b, err)
				}
				f.Exec("ANALYZE") // as autovacuum does
				var times []time.Duration
				for b.Loop() {
					begun := time.Now()
					task, _, err := f.Create(b.Context(), request, tasks.Idempotency{})
					if err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(begun))
					b.StopTimer() // restores the number of open holds
					f.Exec("DELETE FROM holds WHERE task_id = $1", task.ID)
					b.StartTimer()
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs/median")
			})
		}
	}
}
