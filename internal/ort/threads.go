package ort

import (
	"context"
	"runtime"
	"sync"
)

// Crew is a number of operating-system threads that run models for one caller.
//
// The C library keeps a heap per thread, and what a model frees on a thread stays
// with that thread's heap. Go moves goroutines between threads, so a long job that
// runs a model again and again from ordinary goroutines leaves a heap of its peak
// size behind on every thread that it ever touched. The threads of a crew are its
// own; they end with it, and the C library hands their heaps to the next threads.
type Crew struct {
	jobs chan func()
	done sync.WaitGroup
	once sync.Once
}

// NewCrew starts the threads, at least one.
func NewCrew(threads int) *Crew {
	c := &Crew{jobs: make(chan func())}
	for range max(threads, 1) {
		c.done.Go(func() {
			// Never unlocked: the thread ends with the goroutine.
			runtime.LockOSThread()
			for job := range c.jobs {
				job()
			}
		})
	}
	return c
}

// Do calls f for 0 … n−1, on as many threads as there are, and waits. After an
// error, or when ctx ends, no further call begins. It returns the error of the
// lowest number, or the context's. Several Do may share a crew.
func (c *Crew) Do(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	var (
		running sync.WaitGroup
		failed  = make(chan struct{})
		fail    sync.Once
	)
submit:
	for i := range n {
		running.Add(1)
		job := func() {
			defer running.Done()
			if errs[i] = f(i); errs[i] != nil {
				fail.Do(func() { close(failed) })
			}
		}
		select {
		case <-ctx.Done():
			running.Done()
			break submit
		case <-failed:
			running.Done()
			break submit
		case c.jobs <- job:
		}
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Close ends the threads after the calls in progress; it may be called more than
// once. No Do may follow or be waiting.
func (c *Crew) Close() {
	c.once.Do(func() { close(c.jobs) })
	c.done.Wait()
}
