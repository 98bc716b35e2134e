//go:build long && !race

package simulation_test

import "time"

// The extent of the tests in their long form.
const (
	histories         = 10_000
	postgresHistories = 200
	repeats           = 50 // seeds that run twice
)

// large is the size of the large fleet's history.
var large = size{servers: 6, workers: 400, notifiers: 8, customers: 60, accounts: 3000, submissions: 5000, length: 5 * time.Minute}
