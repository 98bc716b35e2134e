package accounts

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits on failed logins.
const (
	// PairFailures is the number of failed logins of one user from one address
	// within ThrottleWindow before further logins are refused without a check.
	PairFailures = 5
	// AddressFailures is the limit for all logins from one address.
	AddressFailures = 30
	// ThrottleWindow is the time for which a failure counts.
	ThrottleWindow = time.Minute

	// After more failures of a user than this within userWindow, from any
	// address, logins are delayed by userDelay for each further failure, up to
	// maxUserDelay. They are never refused, so that no stranger can lock the
	// user out.
	userFailures = 10
	userWindow   = 15 * time.Minute
	userDelay    = 250 * time.Millisecond
	maxUserDelay = 5 * time.Second

	// maxThrottled limits the entries of each counter, which then drops one.
	maxThrottled = 100_000
)

// Throttle counts failed logins by user and address, by address, and by user.
// It is safe for concurrent use, and every call takes the same short time.
type Throttle struct {
	mu                   sync.Mutex
	now                  func() time.Time
	pairs, addresses, by *counter
}

// NewThrottle returns a throttle with the time of clock; nil means time.Now.
func NewThrottle(clock func() time.Time) *Throttle {
	if clock == nil {
		clock = time.Now
	}
	return &Throttle{
		now:   clock,
		pairs: newCounter(PairFailures, ThrottleWindow), addresses: newCounter(AddressFailures, ThrottleWindow),
		by: newCounter(userFailures+int(maxUserDelay/userDelay), userWindow),
	}
}

// Enter counts a login as failed in advance, so that parallel guesses can't
// slip through together. If wait > 0, the login is refused for that long;
// otherwise it is checked after delay. Success removes the failure.
func (t *Throttle) Enter(user, address string) (delay, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	user = strings.ToLower(user)
	pair := user + "\x00" + address
	if wait = max(t.pairs.wait(pair, now), t.addresses.wait(address, now)); wait > 0 {
		return 0, wait
	}
	t.pairs.add(pair, now)
	t.addresses.add(address, now)
	failed := t.by.add(user, now)
	return min(maxUserDelay, time.Duration(max(0, failed-userFailures))*userDelay), 0
}

// Success forgets the failures of a user with the correct password at this
// address. It also removes the last failure from the counts of the address and
// of the user, but not more, because others may be guessing meanwhile.
func (t *Throttle) Success(user, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	user = strings.ToLower(user)
	delete(t.pairs.entries, user+"\x00"+address)
	t.addresses.takeBack(address)
	t.by.takeBack(user)
}

// counter counts events by key in a sliding window: entries holds the last
// events of each key, at most limit.
type counter struct {
	limit   int
	span    time.Duration
	entries map[string][]time.Time
}

func newCounter(limit int, span time.Duration) *counter {
	return &counter{limit: limit, span: span, entries: map[string][]time.Time{}}
}

// recent returns the events inside the window, even if the clock moved back.
func (c *counter) recent(key string, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(c.entries[key]), func(at time.Time) bool { return now.Sub(at) >= c.span || now.Before(at) })
}

// wait returns the time until the key has fewer events than the limit.
func (c *counter) wait(key string, now time.Time) time.Duration {
	at := c.recent(key, now)
	if len(at) < c.limit {
		return 0
	}
	return at[0].Add(c.span).Sub(now)
}

// add counts an event and returns the key's number of events, at most limit. It
// removes a few expired entries, or any entries if there are too many.
func (c *counter) add(key string, now time.Time) int {
	examined := 0
	for other, at := range c.entries {
		expired := now.Sub(at[len(at)-1]) >= c.span
		if other != key && (expired || len(c.entries) >= maxThrottled) {
			delete(c.entries, other)
		}
		if examined++; examined == 8 {
			break
		}
	}
	at := append(c.recent(key, now), now)
	at = at[max(0, len(at)-c.limit):]
	c.entries[key] = at
	return len(at)
}

// takeBack removes the key's last event.
func (c *counter) takeBack(key string) {
	if at := c.entries[key]; len(at) > 1 {
		c.entries[key] = at[:len(at)-1]
	} else {
		delete(c.entries, key)
	}
}
