//go:build long

package worker_test

import "time"

// Sizes of the reliability tests in their long form.
const (
	killsInSuite = 200              // for each kind of store
	faultStride  = 1                // every faultStride-th operation fails in its turn
	outage       = 10 * time.Second // of the database
)
