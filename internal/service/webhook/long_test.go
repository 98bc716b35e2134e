//go:build long

package webhook_test

import "time"

// Sizes of the reliability tests in their long form.
const (
	slowCallbacks = 200
	virtualPoll   = 20 * time.Millisecond // of the notifier in virtual time
)
