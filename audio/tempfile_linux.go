package audio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// unnamedFile uses O_TMPFILE, which never gives the file a name. It returns
// errors.ErrUnsupported on file systems without it.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch err {
	case nil:
		return os.NewFile(uintptr(fd), dir), nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS:
		return nil, errors.ErrUnsupported
	}
	return nil, fmt.Errorf("audio: temporary file in %q: %w", dir, err)
}
