package webhook

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// longestRetryAfter bounds how long a receiver may put off the next delivery.
const longestRetryAfter = 15 * time.Minute

// refusal is an answer of a receiver other than 2xx.
type refusal struct {
	status string
	code   int
	after  time.Duration // the receiver asks for this time before the next delivery
}

func (r *refusal) Error() string { return "the receiver answered " + r.status }

// retryAfter returns how long the header Retry-After asks to wait, in seconds or until a
// date, up to longestRetryAfter.
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

// nextDelay is how long after a failed delivery, the n-th, the next one is tried: as the
// schedule says, or when the receiver asks for it if that is later. It reports false
// where none is tried: after the last, and when the receiver has gone (410).
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
