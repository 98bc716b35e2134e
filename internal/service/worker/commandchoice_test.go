package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestCommandChoice: the fallback command runs for an hour after a crash of the
// primary one, unless it crashes itself.
func TestCommandChoice(t *testing.T) {
	now := time.Now()
	both := commandChoice{primary: []string{"primary"}, fallback: []string{"fallback"}, turn: time.Hour}
	run := func(command string, crash bool, lives time.Duration) {
		t.Helper()
		found, _, end := both.begin(t.Context(), now)
		end()
		assert.Equal(t, []string{command}, found)
		now = now.Add(lives)
		both.ended(crash, now)
	}
	run("primary", false, time.Minute)
	run("primary", true, time.Minute)
	run("fallback", false, 50*time.Minute) // ended from outside
	run("fallback", false, 10*time.Minute)
	run("primary", true, time.Minute)
	run("fallback", false, 59*time.Minute)
	run("fallback", false, time.Minute)
	run("primary", true, time.Minute)
	run("fallback", true, time.Minute)
	run("primary", true, time.Minute)
	run("fallback", false, time.Hour)
	run("primary", true, 30*time.Hour)
	run("fallback", false, 59*time.Minute)
	now = now.Add(time.Minute) // a pause extended beyond the turn
	run("primary", false, time.Minute)

	alone := commandChoice{primary: []string{"primary"}, turn: time.Hour}
	assert.False(t, alone.ended(true, now))
}
