//go:build !long && !race

package simulation_test

import "time"

// The extent of the tests in the normal suite.
const (
	histories         = 6
	postgresHistories = 1
	repeats           = 1 // seeds that run twice
)

// large is the size of the large fleet's history.
var large = size{servers: 3, workers: 40, notifiers: 4, customers: 20, accounts: 300, submissions: 100, length: time.Minute}
