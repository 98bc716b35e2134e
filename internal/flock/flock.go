// Package flock locks open files. The system releases a lock when the process ends,
// however it ends.
package flock

import "errors"

// ErrTaken is returned by Try when another process holds the lock.
var ErrTaken = errors.New("locked by another process")
