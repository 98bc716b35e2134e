package worker

import (
	"context"
	"time"
)

// longestTurn limits how long a careful command runs before the usual one is
// tried again.
const longestTurn = 24 * time.Hour

// turns chooses which of two commands runs: the careful one for a time after a
// crash of the usual one, and the usual one after a crash of the careful one or
// when that time is over.
type turns struct {
	usual, careful []string
	first          time.Duration // of the careful command's turns
	next           time.Duration // doubles while the usual command crashes again
	until          time.Time     // end of the careful command's turn; in the past during the usual one's
}

// begin returns the command whose turn it is, and a context that ends with the
// turn.
func (t *turns) begin(ctx context.Context, now time.Time) ([]string, context.Context, context.CancelFunc) {
	if !now.Before(t.until) {
		t.until = time.Time{}
		ctx, end := context.WithCancel(ctx)
		return t.usual, ctx, end
	}
	ctx, end := context.WithDeadline(ctx, t.until)
	return t.careful, ctx, end
}

// ended records how a process ended, and reports whether the other command is
// next.
func (t *turns) ended(crashed bool, begun, now time.Time) bool {
	switch careful := !t.until.IsZero(); {
	case len(t.careful) == 0:
		return false
	case careful && crashed: // the difference between the commands was not the cause
		t.until, t.next = time.Time{}, t.first
	case careful && !now.Before(t.until):
		t.until, t.next = time.Time{}, min(2*t.next, longestTurn)
	case !careful && crashed:
		if now.Sub(begun) >= t.next {
			t.next = t.first
		}
		t.until = now.Add(t.next)
	default:
		return false
	}
	return true
}
