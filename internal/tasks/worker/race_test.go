//go:build !long && race

package worker_test

import "time"

// How much the reliability tests do under the race detector, which makes the database ten times slower.
const (
	killsInSuite = 5                       // for each kind of store
	faultStride  = 6                       // every which operation fails in its turn
	outage       = 1500 * time.Millisecond // of the database
)
