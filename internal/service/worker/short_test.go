//go:build !long && !race

package worker_test

import "time"

// Sizes of the reliability tests in the suite.
const (
	killsInSuite = 15                      // for each kind of store
	faultStride  = 1                       // every faultStride-th operation fails in its turn
	outage       = 1500 * time.Millisecond // of the database
)
