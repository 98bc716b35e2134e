package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTurns: the careful command runs for an hour after a crash of the usual
// one, for two hours if that soon crashes again, and at most for a day. It gets
// an hour again after it crashed itself, and after the usual one ran well for
// longer.
func TestTurns(t *testing.T) {
	now := time.Now()
	both := turns{usual: []string{"usual"}, careful: []string{"careful"}, first: time.Hour, next: time.Hour}
	run := func(command string, crash bool, lives time.Duration) {
		t.Helper()
		found, _, end := both.begin(t.Context(), now)
		end()
		assert.Equal(t, []string{command}, found)
		begun := now
		now = now.Add(lives)
		both.ended(crash, begun, now)
	}
	run("usual", false, time.Minute)
	run("usual", true, time.Minute)
	run("careful", false, 50*time.Minute) // ended from outside
	run("careful", false, 10*time.Minute)
	run("usual", true, time.Minute)
	run("careful", false, 119*time.Minute)
	run("careful", false, time.Minute)
	run("usual", true, time.Minute)
	run("careful", true, time.Minute)
	run("usual", true, time.Minute)
	run("careful", false, time.Hour)
	for range 10 {
		run("usual", true, time.Minute)
		run("careful", false, both.until.Sub(now))
	}
	run("usual", true, time.Minute)
	run("careful", false, 24*time.Hour-time.Second)
	run("careful", false, time.Second)
	run("usual", true, 30*time.Hour)
	run("careful", false, 59*time.Minute)
	now = now.Add(time.Minute) // a pause extended beyond the turn
	run("usual", false, time.Minute)

	alone := turns{usual: []string{"usual"}, first: time.Hour, next: time.Hour}
	assert.False(t, alone.ended(true, now, now))
}
