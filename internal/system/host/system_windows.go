package host

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// TryLock locks a file. It returns ErrLocked if another process holds the lock.
func TryLock(f *os.File) error {
	err := lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// WaitLock locks a file as soon as the current holder releases it.
func WaitLock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30}) // a byte beyond the content
}

// OwnGroup does nothing on systems without process groups.
func OwnGroup(*exec.Cmd) {}

// SignalGroup kills the program alone on systems without process groups.
func SignalGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// ProcessorSeconds returns 0: the system does not report children's time.
func ProcessorSeconds() float64 { return 0 }
