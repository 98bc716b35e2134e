// Package flock locks open files. The system releases a lock when the process
// ends for any reason.
package flock

import "errors"

// ErrTaken is returned by Try if another process holds the lock.
var ErrTaken = errors.New("locked by another process")
