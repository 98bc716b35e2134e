//go:build !long && !race

package tasks

import "time"

// How much the reliability tests do in the suite.
const (
	killsInSuite  = 15 // for each kind of store
	seedsInSuite  = 40
	faultStride   = 1 // every which operation fails in its turn
	batchTasks    = 24
	slowCallbacks = 200
	virtualPoll   = 20 * time.Millisecond   // of the notifier in virtual time
	outage        = 1500 * time.Millisecond // of the database
)
