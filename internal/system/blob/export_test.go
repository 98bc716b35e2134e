package blob

import "time"

// Limit sets the limits of a store.
func (s *Store) Limit(answer, transfer time.Duration) { s.limits = limits{answer, transfer} }
