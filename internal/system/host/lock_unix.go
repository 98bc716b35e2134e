//go:build unix

package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks a file. It returns ErrLocked if another process holds the lock.
func TryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// WaitLock locks a file as soon as the current holder releases it.
func WaitLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }
