package httpserver

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fakeProber is a prober implemented by a function.
type fakeProber func(path, filename string) (float64, error)

func (f fakeProber) Probe(_ context.Context, path, filename string) (float64, error) {
	return f(path, filename)
}

// TestHoldFollowsTheProbedLength: an upload's hold is the price of its length;
// an upload that can't be probed is held for as tasks.Config.UnknownLength.
func TestHoldFollowsTheProbedLength(t *testing.T) {
	var seconds float64
	var fail error
	w := newWorld(t, func(c *Config) {
		c.Tasks.Config.Prober = fakeProber(func(path, filename string) (float64, error) {
			data, err := os.ReadFile(path)
			assert.NoError(t, err)
			assert.Equal(t, wav(2), data)
			assert.Equal(t, "silence.wav", filename)
			return seconds, fail
		})
	})
	before := 0.0
	for _, tt := range []struct {
		seconds float64
		err     error
		hold    float64
	}{{30, nil, 0.0133}, {3600, nil, 0.8}, {0, errors.New("no audio"), 0.0133}, {math.NaN(), nil, 0.0133}, {-5, nil, 0.0133}, {math.Inf(1), nil, 4}, {1e9, nil, 4}} {
		seconds, fail = tt.seconds, tt.err
		w.create(upload(nil))
		held := w.do("GET", "/account", nil).object(t)["held_amount"].(float64)
		assert.InDelta(t, tt.hold, held-before, 1e-9, "%v s", tt.seconds)
		before = held
	}
}

// TestProbesTakeTurns: many concurrent uploads do not start as many processes.
func TestProbesTakeTurns(t *testing.T) {
	var now, most atomic.Int64
	w := newWorld(t, func(c *Config) {
		c.Tasks.Config.Prober = fakeProber(func(string, string) (float64, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(10 * time.Millisecond)
			return 1, nil
		})
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { assert.Equal(t, 201, w.do("POST", "/tasks", upload(nil)).status) })
	}
	wg.Wait()
	assert.LessOrEqual(t, most.Load(), int64(max(2, runtime.GOMAXPROCS(0))))
	assert.Positive(t, most.Load())
}
