package outside

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLeaks finds a goroutine that waits, unless it is known, and none once it
// has ended.
func TestLeaks(t *testing.T) {
	before := Running()
	assert.Empty(t, Leaks(before...))
	wait, begun := make(chan bool), make(chan bool)
	go func() { begun <- <-wait }()
	assert.Contains(t, Leaks(before...), "outside.TestLeaks.func1")
	assert.Empty(t, Leaks(append(before, "github.com/otograph/otograph/internal/test/outside.TestLeaks.func1")...))
	wait <- true
	<-begun
	assert.Empty(t, Leaks(before...))
}
