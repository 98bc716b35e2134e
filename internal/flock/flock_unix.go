//go:build unix

package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Try takes the lock of a file. The error is ErrTaken when another process holds it.
func Try(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrTaken
	}
	return err
}

// Wait takes the lock of a file when whoever holds it releases it.
func Wait(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }
