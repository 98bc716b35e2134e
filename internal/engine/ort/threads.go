package ort

import (
	"cmp"
	"context"
	"runtime"
	"sync"
)

// WorkerPool is a group of system threads that run models for one caller.
//
// The C library keeps a heap per thread, and memory freed on a thread stays in
// that thread's heap. Go moves goroutines between threads, so a long job that
// runs a model from ordinary goroutines leaves a heap of its peak size on every
// thread that it has used. A pool's threads are dedicated: they end with it,
// and the C library passes their heaps to the next threads.
type WorkerPool struct {
	jobs chan func()
	done sync.WaitGroup
	once sync.Once
}

// NewWorkerPool starts the threads, at least one.
func NewWorkerPool(threads int) *WorkerPool {
	c := &WorkerPool{jobs: make(chan func())}
	for range max(threads, 1) {
		c.done.Go(func() {
			// Never unlocked, so the thread ends with the goroutine.
			runtime.LockOSThread()
			for job := range c.jobs {
				job()
			}
		})
	}
	return c
}

// Do calls f for 0 … n−1, in parallel on the pool's threads, and waits. After
// an error, or when ctx ends, it starts no further call. It returns the error
// of the lowest number, or the context's. Several calls of Do may share a pool.
func (c *WorkerPool) Do(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	submitting, stop := context.WithCancel(ctx)
	defer stop()
	for i := 0; i < n && submitting.Err() == nil; i++ {
		running.Add(1)
		job := func() {
			defer running.Done()
			if errs[i] = f(i); errs[i] != nil {
				stop()
			}
		}
		select {
		case <-submitting.Done():
			running.Done()
		case c.jobs <- job:
		}
	}
	running.Wait()
	return cmp.Or(append(errs, ctx.Err())...)
}

// Close ends the threads after the running calls; it may be called more than
// once, but neither during a Do nor before one.
func (c *WorkerPool) Close() {
	c.once.Do(func() { close(c.jobs) })
	c.done.Wait()
}
