//go:build !long && !race

package simulation_test

import "time"

// The extent of the tests in the normal suite.
const (
	histories         = 200
	postgresHistories = 4
	repeats           = 5 // seeds that run twice
)

// large is the size of the large fleet's history.
var large = size{servers: 3, workers: 100, notifiers: 4, customers: 20, accounts: 1000, submissions: 600, length: time.Minute}
