package worker

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// DefaultStall is how long an engine may work without a sign of progress, in
// addition to a tenth of the audio's length: longer than the slowest step
// between two signs, which is the load of a large model, a pass of it over 30 s
// of audio on one slow core, or ffmpeg's limit of 15 min. The steps whose time
// grows with the length (decoding, speech detection) take less than a hundredth
// of it on a common machine.
const DefaultStall = 20 * time.Minute

// stallShare is the share of the audio's length that extends the time without
// progress.
const stallShare = 0.1

// stallError ends a run without progress, which is not the recording's fault:
// most likely a call of native code hangs.
type stallError struct{ limit time.Duration }

// Error is the text that the customer reads.
func (e stallError) Error() string {
	return fmt.Sprintf("a failure of the service's engine: no progress for %s; nothing is charged", e.limit.Round(time.Second))
}

// watchStall returns a context for the engine's run on a recording of the given
// length, and the job to run: the context is canceled with a stallError when
// the engine has not called Progress, Working or Decoded for too long. Call
// stop after the run.
func watchStall(ctx context.Context, limit time.Duration, seconds float64, job Job) (run context.Context, watched Job, stop func()) {
	run, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	allowed := func() time.Duration { return limit + time.Duration(seconds*stallShare*float64(time.Second)) }
	timer := time.AfterFunc(allowed(), func() {
		mu.Lock()
		defer mu.Unlock()
		cancel(stallError{allowed()})
	})
	alive := func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Reset(allowed())
	}
	watched = job
	watched.Progress = func(stage string, done float64) {
		alive()
		job.Progress(stage, done)
	}
	watched.Working = alive
	watched.Decoded = func(length float64) error {
		mu.Lock()
		seconds = length
		mu.Unlock()
		alive()
		return job.Decoded(length)
	}
	return run, watched, func() {
		timer.Stop()
		cancel(nil)
	}
}
