//go:build race

package simulation_test

import "time"

// The extent of the tests under the race detector, which makes the database ten
// times slower.
const (
	histories         = 3
	postgresHistories = 1
	repeats           = 1 // seeds that run twice
)

// large is the size of the large fleet's history.
var large = size{servers: 2, workers: 10, notifiers: 2, customers: 5, accounts: 50, submissions: 20, length: 30 * time.Second}
