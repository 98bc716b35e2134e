package accounts

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// movable is a clock that a test sets.
type movable struct{ t time.Time }

func (m *movable) now() time.Time { return m.t }

func newMovable() *movable { return &movable{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func TestThrottleByPair(t *testing.T) {
	c := newMovable()
	th := NewThrottle(c.now)
	for range PairFailures {
		_, wait := th.Enter("ann", "a")
		require.Zero(t, wait)
		c.t = c.t.Add(time.Second)
	}
	_, wait := th.Enter("ANN", "a")
	assert.Equal(t, ThrottleWindow-PairFailures*time.Second, wait, "a different case is not a new user")
	_, wait = th.Enter("ann", "b")
	assert.Zero(t, wait, "another address is not locked out")
	_, wait = th.Enter("bob", "a")
	assert.Zero(t, wait, "another user is not delayed either")
	c.t = c.t.Add(ThrottleWindow)
	_, wait = th.Enter("ann", "a")
	assert.Zero(t, wait)
	th.Success("ann", "a")
	for range PairFailures {
		_, wait = th.Enter("ann", "a")
		assert.Zero(t, wait, "a success clears the failures")
	}
	c.t = c.t.Add(-time.Hour)
	_, wait = th.Enter("ann", "a")
	assert.Zero(t, wait, "a clock set back locks no user out")
}

// TestThrottleByAddress checks that one address can't try many users.
func TestThrottleByAddress(t *testing.T) {
	c := newMovable()
	th := NewThrottle(c.now)
	for i := range AddressFailures {
		_, wait := th.Enter(fmt.Sprint("user", i), "a")
		require.Zero(t, wait)
	}
	_, wait := th.Enter("another", "a")
	assert.Equal(t, ThrottleWindow, wait)
	_, wait = th.Enter("another", "b")
	assert.Zero(t, wait)

	// An occasional successful login does not reset the count.
	c.t = c.t.Add(ThrottleWindow)
	heard := 0
	for i := range 1000 {
		if _, wait := th.Enter(fmt.Sprint("user", i), "c"); wait == 0 {
			heard++
		}
		if _, wait := th.Enter("mine", "c"); wait == 0 {
			th.Success("mine", "c")
		}
	}
	assert.Equal(t, AddressFailures, heard)
}

// TestThrottleByUser checks that guesses at one user's password from many
// addresses are slowed down, and so is the user, but that no user is locked
// out.
func TestThrottleByUser(t *testing.T) {
	c := newMovable()
	th := NewThrottle(c.now)
	var last time.Duration
	for i := range 1000 {
		delay, wait := th.Enter("ann", fmt.Sprint("address", i))
		require.Zero(t, wait)
		require.GreaterOrEqual(t, delay, last)
		if i < userFailures {
			require.Zero(t, delay)
		}
		last = delay
	}
	assert.Equal(t, maxUserDelay, last)
	c.t = c.t.Add(userWindow)
	delay, _ := th.Enter("ann", "hers")
	assert.Zero(t, delay)
}

// TestThrottleIsBounded checks that a full table drops the oldest entries and
// still accepts new ones, and that expired entries are removed.
func TestThrottleIsBounded(t *testing.T) {
	c := newMovable()
	th := NewThrottle(c.now)
	for i := range maxThrottled + 1000 {
		_, wait := th.Enter("x", fmt.Sprint(i))
		require.Zero(t, wait)
	}
	assert.Len(t, th.pairs.entries, maxThrottled)
	assert.Len(t, th.addresses.entries, maxThrottled)
	_, wait := th.Enter("new", "new")
	assert.Zero(t, wait, "filling the table locks no user out")
	c.t = c.t.Add(ThrottleWindow)
	for i := range maxThrottled / 3 {
		th.Enter("y", fmt.Sprint(i%20_000+1_000_000))
	}
	assert.Less(t, len(th.pairs.entries), 30_000, "new entries remove expired ones")
}
