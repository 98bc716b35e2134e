//go:build unix

package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Try locks a file. It returns ErrTaken if another process holds the lock.
func Try(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrTaken
	}
	return err
}

// Wait locks a file as soon as the current holder releases it.
func Wait(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }
