//go:build !long && race

package webhook_test

import "time"

// Sizes of the reliability tests under the race detector, which makes the
// database ten times slower.
const (
	slowCallbacks = 40
	virtualPoll   = 100 * time.Millisecond // of the notifier in virtual time
)
