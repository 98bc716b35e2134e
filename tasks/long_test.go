//go:build long

package tasks

import "time"

// How much the reliability tests do in their long form.
const (
	killsInSuite  = 200 // for each kind of store
	seedsInSuite  = 3000
	faultStride   = 1 // every which operation fails in its turn
	batchTasks    = 24
	slowCallbacks = 200
	virtualPoll   = 20 * time.Millisecond // of the notifier in virtual time
	outage        = 10 * time.Second      // of the database
)
