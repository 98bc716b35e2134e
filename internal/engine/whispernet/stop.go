package whispernet

import (
	"errors"
	"sync/atomic"
)

// ErrStopped is returned by stopped computations.
var ErrStopped = errors.New("whispernet: stopped")

// ErrMemory is returned when the system is out of memory.
var ErrMemory = errors.New("whispernet: out of memory")

// caught converts a panic with ErrMemory into an error.
func caught(err *error) {
	switch p := recover(); p {
	case nil:
	case ErrMemory:
		*err = ErrMemory
	default:
		panic(p)
	}
}

// Stop ends running computations. The zero value is ready.
type Stop struct{ flag atomic.Bool }

// Now ends every computation with this Stop within a few milliseconds.
func (s *Stop) Now() { s.flag.Store(true) }

// Stopped reports whether Now was called.
func (s *Stop) Stopped() bool { return s != nil && s.flag.Load() }
