//go:build !long && !race

package webhook_test

import "time"

// Sizes of the reliability tests in the suite.
const (
	slowCallbacks = 200
	virtualPoll   = 20 * time.Millisecond // of the notifier in virtual time
)
