package webhook

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/otograph/otograph/spec"
)

// longestRetryAfter limits the delay that a receiver may ask for.
const longestRetryAfter = 15 * time.Minute

type refusal struct {
	status string
	code   int
	after  time.Duration // delay before the next delivery that the receiver asks for
}

func (r *refusal) Error() string { return "the receiver answered " + spec.Shorten(r.status) }

// retryAfter returns the delay that the header Retry-After asks for, in seconds
// or until a date, up to longestRetryAfter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestRetryAfter)
}

// nextDelay returns the delay after the n-th failed delivery: the schedule's or
// the receiver's, whichever is longer. It returns false if no delivery follows:
// after the last one, and if the receiver is gone (410).
func (o *Outbox) nextDelay(n int, failure error) (time.Duration, bool) {
	var r *refusal
	refused := errors.As(failure, &r)
	if n > len(o.config.Delays) || refused && r.code == http.StatusGone {
		return 0, false
	}
	delay := o.config.Delays[n-1]
	if refused {
		delay = max(delay, r.after)
	}
	return delay, true
}
