//go:build long

package queue_test

import "github.com/otograph/otograph/internal/system/db"

// The extent of the reliability tests in their long form.
const (
	batchTasks = 24
)

// claimShapes are the queues of BenchmarkClaim.
var claimShapes = []claimShape{
	{db.SQLite, 1000, 10_000, 0},
	{db.Postgres, 10, 100_000, 0},
	{db.Postgres, 10_000, 100_000, 0},
	{db.Postgres, 10_000, 200_000, 100_000},
	{db.Postgres, 10, 1_000_000, 0},
}
