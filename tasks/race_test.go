//go:build !long && race

package tasks

import "time"

// How much the reliability tests do under the race detector, which makes the database ten times slower.
const (
	killsInSuite  = 5 // for each kind of store
	seedsInSuite  = 5
	faultStride   = 6 // every which operation fails in its turn
	batchTasks    = 8
	slowCallbacks = 60
	virtualPoll   = 100 * time.Millisecond  // of the notifier in virtual time
	outage        = 1500 * time.Millisecond // of the database
)
