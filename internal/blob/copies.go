package blob

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/flock"
)

// copyPrefix begins the names of the copies that Local makes. The process that
// needs a copy holds its lock: one that can be locked was left by a process that
// was killed.
const copyPrefix = "otograph-copy-"

// newCopy creates a file in dir for a copy of key, and locks it.
func newCopy(dir, key string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, copyPrefix+"*"+filepath.Ext(key))
		if err != nil {
			return nil, err
		}
		// Without locks on this file system, sweepCopies can lock nothing either.
		if !errors.Is(flock.Try(f), flock.ErrTaken) && isAt(f, f.Name()) {
			return f, nil
		}
		f.Close() // a sweep took it for a file of the dead
		_ = os.Remove(f.Name())
	}
}

// dropCopy closes and removes a copy.
func dropCopy(f *os.File) {
	f.Close()
	_ = os.Remove(f.Name())
}

// sweepCopies removes the copies that killed processes left in dir, "" for the
// system's folder. What cannot be opened is somebody else's, and stays.
func sweepCopies(dir string) {
	if dir == "" {
		dir = os.TempDir()
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), copyPrefix) || !e.Type().IsRegular() {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if flock.Try(f) == nil && isAt(f, f.Name()) {
			dropCopy(f)
		} else {
			f.Close()
		}
	}
}

// isAt reports whether the open file f is the one at path.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(open, there)
}
