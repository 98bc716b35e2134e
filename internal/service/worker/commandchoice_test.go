package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestCommandChoice: the fallback command runs for an hour after a crash of the
// primary one, for two hours if that soon crashes again, and at most for a day.
// It gets an hour again after it crashed itself, and after the primary one ran
// well for longer.
func TestCommandChoice(t *testing.T) {
	now := time.Now()
	both := commandChoice{primary: []string{"primary"}, fallback: []string{"fallback"}, first: time.Hour, next: time.Hour}
	run := func(command string, crash bool, lives time.Duration) {
		t.Helper()
		found, _, end := both.begin(t.Context(), now)
		end()
		assert.Equal(t, []string{command}, found)
		begun := now
		now = now.Add(lives)
		both.ended(crash, begun, now)
	}
	run("primary", false, time.Minute)
	run("primary", true, time.Minute)
	run("fallback", false, 50*time.Minute) // ended from outside
	run("fallback", false, 10*time.Minute)
	run("primary", true, time.Minute)
	run("fallback", false, 119*time.Minute)
	run("fallback", false, time.Minute)
	run("primary", true, time.Minute)
	run("fallback", true, time.Minute)
	run("primary", true, time.Minute)
	run("fallback", false, time.Hour)
	for range 10 {
		run("primary", true, time.Minute)
		run("fallback", false, both.until.Sub(now))
	}
	run("primary", true, time.Minute)
	run("fallback", false, 24*time.Hour-time.Second)
	run("fallback", false, time.Second)
	run("primary", true, 30*time.Hour)
	run("fallback", false, 59*time.Minute)
	now = now.Add(time.Minute) // a pause extended beyond the turn
	run("primary", false, time.Minute)

	alone := commandChoice{primary: []string{"primary"}, first: time.Hour, next: time.Hour}
	assert.False(t, alone.ended(true, now, now))
}
