package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sound is done when no work on its final texts and sound events waits or runs.
func TestDoneSoundHasNoWaitingWork(t *testing.T) {
	c := &client{s: &scheduler{cores: 1}}
	wait := make(chan struct{})
	work := func(end int) task { return task{end, func(int) { <-wait }} }
	assert.Equal(t, 50, c.done(50))
	c.do(partials, work(10)) // may be left out
	assert.Equal(t, 50, c.done(50))
	c.do(finals, work(20))
	c.do(finals, work(40))
	assert.Equal(t, 20, c.done(50))
	c.do(sounds, work(15))
	assert.Equal(t, 15, c.done(50))
	close(wait)
	c.work.Wait()
	assert.Equal(t, 50, c.done(50))
	assert.Empty(t, c.s.waiting)
}
