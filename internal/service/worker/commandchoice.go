package worker

import (
	"context"
	"time"
)

// longestFallback limits how long a fallback command runs before the primary
// one is tried again.
const longestFallback = 24 * time.Hour

// commandChoice chooses which of two commands runs: the fallback for a time
// after a crash of the primary one, and the primary one after a crash of the
// fallback or when that time is over.
type commandChoice struct {
	primary, fallback []string
	first             time.Duration // of the fallback command's turns
	next              time.Duration // doubles while the primary command crashes again
	until             time.Time     // end of the fallback command's turn; in the past during the primary one's
}

// begin returns the command whose turn it is, and a context that ends with the
// turn.
func (t *commandChoice) begin(ctx context.Context, now time.Time) ([]string, context.Context, context.CancelFunc) {
	if !now.Before(t.until) {
		t.until = time.Time{}
		ctx, end := context.WithCancel(ctx)
		return t.primary, ctx, end
	}
	ctx, end := context.WithDeadline(ctx, t.until)
	return t.fallback, ctx, end
}

// ended records how a process ended, and reports whether the other command is
// next.
func (t *commandChoice) ended(crashed bool, begun, now time.Time) bool {
	switch fallback := !t.until.IsZero(); {
	case len(t.fallback) == 0:
		return false
	case fallback && crashed: // the difference between the commands was not the cause
		t.until, t.next = time.Time{}, t.first
	case fallback && !now.Before(t.until):
		t.until, t.next = time.Time{}, min(2*t.next, longestFallback)
	case !fallback && crashed:
		if now.Sub(begun) >= t.next {
			t.next = t.first
		}
		t.until = now.Add(t.next)
	default:
		return false
	}
	return true
}
