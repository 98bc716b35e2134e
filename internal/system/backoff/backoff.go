// Package backoff implements waits, heartbeats and retries of failures.
package backoff

import (
	"context"
	"slices"
	"time"
)

// Pauses between attempts of Retry: the first, doubled up to the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Sleep waits for d and returns true, or false as soon as ctx is done.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Horizon is an upper bound on a pause with jitter. A time beyond it was written
// before the clock was set back, and counts as due.
func Horizon(pauses ...time.Duration) time.Duration {
	longest := slices.Max(append(slices.Clip(pauses), 0))
	return longest + longest/4 + time.Second
}

// Signal sends a value unless c still holds the previous one.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait waits for d, for a value of one of two channels, either of which may be
// nil, or until ctx is done. It drains both channels, so that one wait serves
// both.
func Wait(ctx context.Context, d time.Duration, wake, other <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-other:
	case <-timer.C:
	}
	for _, c := range []<-chan struct{}{wake, other} {
		select {
		case <-c:
		default:
		}
	}
}

// Every calls work after every interval until ctx is done or work fails, and
// returns the error of work. If a call takes longer than the interval, the next
// one follows without a pause.
func Every(ctx context.Context, interval time.Duration, work func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := work(); err != nil {
			return err
		}
	}
}

// Retry calls try until it succeeds, passing returns false for its error, or
// ctx is done, and returns try's last error. Pauses grow from 100 ms to 5 s.
func Retry(ctx context.Context, passing func(error) bool, try func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := try(ctx)
		if err == nil || !passing(err) || !Sleep(ctx, pause) {
			return err
		}
	}
}
