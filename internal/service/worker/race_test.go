//go:build !long && race

package worker_test

import "time"

// Sizes of the reliability tests under the race detector, which makes the
// database ten times slower.
const (
	killsInSuite = 3                       // for each kind of store
	faultStride  = 6                       // every faultStride-th operation fails in its turn
	outage       = 1500 * time.Millisecond // of the database
)
