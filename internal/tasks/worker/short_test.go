//go:build !long && !race

package worker_test

import "time"

// How much the reliability tests do in the suite.
const (
	killsInSuite = 15                      // for each kind of store
	faultStride  = 1                       // every which operation fails in its turn
	outage       = 1500 * time.Millisecond // of the database
)
