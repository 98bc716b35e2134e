package weightfile

import (
	"errors"
	"fmt"
	"os"

	"github.com/otograph/otograph/internal/files/mediafiles"
)

// ErrNotFile is returned by Open for a folder, a pipe or a device.
var ErrNotFile = errors.New("expected a regular file")

// Open opens a regular file and returns its size. It opens nothing else,
// because opening a pipe could block forever. Errors name the file and wrap
// ErrNotFile, or come from the file system.
func Open(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: %w, found %s", path, ErrNotFile, mediafiles.Kind(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil { // of the opened file, because the path may now name another file
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
