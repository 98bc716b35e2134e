package httpapi

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// loginFailures is how many failed logins a user and address may have within
// loginWindow before further ones are refused unheard.
const (
	loginFailures = 5
	loginWindow   = time.Minute
	maxThrottled  = 100_000
)

// throttle counts failed logins by user and address in a sliding window.
type throttle struct {
	mu     sync.Mutex
	failed map[throttleKey][]time.Time
	now    func() time.Time
}

type throttleKey struct{ user, address string }

func newThrottle() *throttle {
	return &throttle{failed: map[throttleKey][]time.Time{}, now: time.Now}
}

// enter counts the attempt as failed in advance, so that parallel guesses can't
// slip through together, and returns 0; or, when there were too many, how long
// to wait. success takes the count back.
func (t *throttle) enter(k throttleKey) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	recent := t.recent(k, now)
	if len(recent) >= loginFailures {
		t.failed[k] = recent
		return recent[0].Add(loginWindow).Sub(now)
	}
	if len(t.failed) >= maxThrottled {
		for key := range t.failed {
			if len(t.recent(key, now)) == 0 {
				delete(t.failed, key)
			}
		}
		if len(t.failed) >= maxThrottled {
			return loginWindow // someone fills the table: no guess is heard until it empties
		}
	}
	t.failed[k] = append(recent, now)
	return 0
}

// success forgets the failures of a user who knew the password.
func (t *throttle) success(k throttleKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failed, k)
}

// recent gives the failures within the window; a clock that jumped back doesn't
// keep old ones alive.
func (t *throttle) recent(k throttleKey, now time.Time) []time.Time {
	var out []time.Time
	for _, at := range t.failed[k] {
		if age := now.Sub(at); age < loginWindow && age >= 0 {
			out = append(out, at)
		}
	}
	return out
}

// clientAddress is the address a request came from, as far as it identifies a
// client: for IPv6 the network of 64 bits, within which addresses are free.
func clientAddress(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64)
		return p.String()
	}
	return a.String()
}
