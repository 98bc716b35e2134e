//go:build long

package worker_test

import "time"

// How much the reliability tests do in their long form.
const (
	killsInSuite = 200              // for each kind of store
	faultStride  = 1                // every which operation fails in its turn
	outage       = 10 * time.Second // of the database
)
