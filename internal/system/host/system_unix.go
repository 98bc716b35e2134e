//go:build unix

package host

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

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

// OwnGroup starts a program in a new process group.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// SignalGroup sends a signal to all processes in a program's group.
func SignalGroup(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }

// ProcessorSeconds returns the processor time of the process so far, including
// native threads and children that have exited (the decoder of compressed
// formats). On a busy machine it is more meaningful than the wall clock.
func ProcessorSeconds() float64 {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += u.Utime.Nano() + u.Stime.Nano()
		}
	}
	return float64(sum) / 1e9
}
