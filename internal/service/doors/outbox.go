package doors

import (
	"context"
	"iter"
	"sync"
	"time"
)

// outbox holds the messages that wait for the client.
type outbox struct {
	most  int // bytes
	wake  chan struct{}
	empty chan struct{} // closed after the last message

	mu       sync.Mutex
	waiting  [][]byte
	size     int
	finished bool
}

func newOutbox(most int) *outbox {
	return &outbox{most: most, wake: make(chan struct{}, 1), empty: make(chan struct{})}
}

// add adds messages. It reports whether there was room for them.
func (o *outbox) add(messages [][]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range messages {
		if o.size += len(m); o.size > o.most && len(o.waiting) > 0 {
			o.size -= len(m)
			return false
		}
		o.waiting = append(o.waiting, m)
	}
	o.signal()
	return true
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// all yields the messages until finish was called and none is left, or ctx is
// done.
func (o *outbox) all(ctx context.Context) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		defer close(o.empty)
		for ctx.Err() == nil {
			o.mu.Lock()
			var next []byte
			n := len(o.waiting)
			if n > 0 {
				next, o.waiting = o.waiting[0], o.waiting[1:]
				o.size -= len(next)
			}
			finished := o.finished
			o.mu.Unlock()
			switch {
			case n > 0 && !yield(next), n == 0 && finished:
				return
			case n == 0:
				select {
				case <-o.wake:
				case <-ctx.Done():
				}
			}
		}
	}
}

// finish waits until the messages were written, at most for a time.
func (o *outbox) finish(most time.Duration) {
	o.mu.Lock()
	o.finished = true
	o.signal()
	o.mu.Unlock()
	select {
	case <-o.empty:
	case <-time.After(most):
	}
}
