package audio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// inputPath is descriptor 3 of the child, with a separate position.
const inputPath = "/proc/self/fd/3"

// widenPipe lets the child write up to a megabyte ahead. It only affects speed,
// so errors are ignored: the kernel limits the total size of a user's pipes.
func widenPipe(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}

// awaitExit waits until a child has exited without reaping it, so that the
// kernel can't give its process ID to another process.
func awaitExit(pid int) bool {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err == nil
		}
	}
}

// unnamedFile uses O_TMPFILE; without it the error is errors.ErrUnsupported.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch err {
	case nil:
		return os.NewFile(uintptr(fd), dir), nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS:
		return nil, errors.ErrUnsupported
	}
	return nil, fmt.Errorf("in %q: %w", dir, err)
}

func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("otograph", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "memory")
	err = f.Truncate(memoryLimit) // takes no memory
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
