//go:build unix

package audio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openAny opens path for reading; O_NONBLOCK keeps a named pipe from blocking.
func openAny(path string, follow bool) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Open(path, flags, 0)
	for errors.Is(err, unix.EINTR) {
		fd, err = unix.Open(path, flags, 0)
	}
	if errors.Is(err, unix.ELOOP) && !follow {
		return nil, errLink
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
