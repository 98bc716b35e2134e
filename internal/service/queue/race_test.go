//go:build !long && race

package queue_test

import "github.com/otograph/otograph/internal/system/db"

// The extent of the reliability tests under the race detector, which makes the
// database ten times slower.
const (
	batchTasks = 8
)

// claimShapes are the queues of BenchmarkClaim.
var claimShapes = []claimShape{{db.SQLite, 10, 1000, 0}, {db.Postgres, 10, 1000, 0}}
