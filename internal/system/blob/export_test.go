package blob

import "time"

// WithLimits sets the limits of a store.
func WithLimits(answer, transfer time.Duration) Option {
	return func(s *Store) { s.limits = limits{answer: answer, transfer: transfer} }
}
