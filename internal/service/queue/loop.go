package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
)

// ErrDraining is the cause with which a Loop's work ends after its grace.
var ErrDraining = errors.New("the member ends")

// Loop is the life of a member that works on several claims at a time: one
// goroutine claims, and each claim is worked on in its own.
type Loop[C any] struct {
	AtOnce int           // claims worked on at a time
	Grace  time.Duration // time that work may take to finish at the end
	// Claim returns the next claim, or nil if there is none now or claiming
	// fails. It is never called concurrently.
	Claim func(ctx context.Context) *C
	// Idle waits after a Claim without a result, until there may be one, at
	// least until freed receives: then some work has ended.
	Idle func(ctx context.Context, freed <-chan struct{})
	// Work works on a claim. Its context ends Grace after the Loop's, with the
	// cause ErrDraining.
	Work func(ctx context.Context, c *C)
}

// Run claims and works until ctx is done, and returns when all work has ended.
func (l Loop[C]) Run(ctx context.Context) {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	slots, freed := make(chan struct{}, l.AtOnce), make(chan struct{}, 1)
	var wait sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		c := l.Claim(ctx)
		if c == nil {
			<-slots
			l.Idle(ctx, freed)
			continue
		}
		wait.Go(func() {
			l.Work(work, c)
			<-slots
			backoff.Signal(freed)
		})
	}
	defer time.AfterFunc(l.Grace, func() { end(ErrDraining) }).Stop()
	wait.Wait()
}
