package audio

import (
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
