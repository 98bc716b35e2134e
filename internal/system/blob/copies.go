package blob

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/otograph/otograph/internal/system/host"
)

// A copy is in a separate folder with a marker file, locked by the process that
// needs the copy. The marker's text is written under the lock: a marker with
// text that can be locked was left by a killed process.
const (
	copyPrefix = "otograph-copy-" // of the folder's name
	copyMarker = "lock"
	markerText = "Otograph's copy of a recording, for as long as a process holds this file's lock.\n"
)

var copyName = regexp.MustCompile(`^copy(\.[a-zA-Z0-9_-]*)?$`)

type localCopy struct {
	*os.File
	marker *os.File
}

func newCopy(dir, key string) (c localCopy, err error) {
	folder, err := os.MkdirTemp(dir, copyPrefix+"*")
	if err != nil {
		return c, err
	}
	const fresh = os.O_CREATE | os.O_EXCL | os.O_RDWR
	if c.marker, err = os.OpenFile(filepath.Join(folder, copyMarker), fresh, 0o600); err == nil {
		if host.TryLock(c.marker) == nil { // without locks on this file system, the copy would look like a dead process's
			_, err = io.WriteString(c.marker, markerText)
		}
		if err == nil {
			c.File, err = os.OpenFile(filepath.Join(folder, "copy"+filepath.Ext(key)), fresh, 0o600)
		}
		if err != nil {
			c.marker.Close()
			_ = os.Remove(c.marker.Name())
		}
	}
	if err != nil {
		_ = os.Remove(folder)
	}
	return c, err
}

// drop removes the copy; its lock is held until it is gone.
func (c localCopy) drop() {
	c.Close()
	_ = os.Remove(c.Name())
	c.marker.Close()
	_ = os.Remove(c.marker.Name())
	_ = os.Remove(filepath.Dir(c.Name()))
}

// sweepCopies removes the copies that this user's killed processes left in dir,
// "" for the system's folder. Other files are kept.
func sweepCopies(dir string) {
	dir = cmp.Or(dir, os.TempDir())
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), copyPrefix) {
			continue
		}
		folder := filepath.Join(dir, e.Name())
		if sweepCopy(folder) == nil {
			_ = os.Remove(folder) // fails if the folder contains other files
		}
	}
}

var errNotOurs = errors.New("not a copy that a process left behind")

func sweepCopy(folder string) error {
	there, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Stat("."); err != nil || !os.SameFile(there, info) || !private(info) {
		return errNotOurs
	}
	if there, err = root.Lstat(copyMarker); err != nil || !there.Mode().IsRegular() {
		return errNotOurs
	}
	marker, err := root.OpenFile(copyMarker, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer marker.Close()
	if info, err := marker.Stat(); err != nil || !os.SameFile(there, info) {
		return errNotOurs
	}
	if err := host.TryLock(marker); err != nil {
		return err
	}
	if text, err := io.ReadAll(io.LimitReader(marker, int64(len(markerText))+1)); err != nil || string(text) != markerText {
		return errNotOurs
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.Type().IsRegular() && copyName.MatchString(e.Name()) {
			err = errors.Join(err, root.Remove(e.Name()))
		}
	}
	if err != nil {
		return err // the next sweep needs the marker
	}
	return root.Remove(copyMarker)
}
