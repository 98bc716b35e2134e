package whispernet

import (
	"sync"
	"sync/atomic"
)

// workerPool is a group of goroutines that compute the parts of a task. Only
// one goroutine at a time may give it a task.
type workerPool struct {
	threads int
	work    chan func()
}

func newWorkerPool(threads int) *workerPool {
	c := &workerPool{threads: max(threads, 1)}
	if c.threads > 1 {
		c.work = make(chan func())
		for range c.threads - 1 {
			go func() {
				for f := range c.work {
					f()
				}
			}()
		}
	}
	return c
}

// free ends the goroutines.
func (c *workerPool) free() {
	if c.work != nil {
		close(c.work)
	}
}

// each calls f for the parts 0 to n-1, on at most as many goroutines as there
// are threads; worker is the index of the goroutine.
func (c *workerPool) each(n int, f func(part, worker int)) {
	if c.threads == 1 || n <= 1 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	var taken atomic.Int64
	var thrown atomic.Pointer[any]
	run := func(worker int) {
		defer func() {
			if p := recover(); p != nil {
				thrown.Store(&p)
				taken.Store(int64(n))
			}
		}()
		for i := taken.Add(1); i <= int64(n); i = taken.Add(1) {
			f(int(i-1), worker)
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < min(c.threads, n); worker++ {
		others.Add(1)
		c.work <- func() {
			defer others.Done()
			run(worker)
		}
	}
	run(0)
	others.Wait()
	if p := thrown.Load(); p != nil {
		panic(*p)
	}
}

// split divides n items evenly among parts and returns the bounds of one part.
func split(n, parts, part int) (from, to int) { return n * part / parts, n * (part + 1) / parts }
