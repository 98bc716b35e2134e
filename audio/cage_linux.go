package audio

import (
	"os"

	"golang.org/x/sys/unix"
)

// inputPath is how the child names the descriptor 3: it opens the file anew, with a position of its own.
const inputPath = "/proc/self/fd/3"

// widenPipe lets the child write a megabyte ahead, so that both sides run at once for longer. It is a matter of speed only, and
// a user who has too many such pipes is refused.
func widenPipe(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}

// awaitExit waits until a child has ended and leaves it for whoever waits for
// it: until then its number is not given to another process.
func awaitExit(pid int) bool {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err == nil
		}
	}
}
