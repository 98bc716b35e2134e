package db

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/system/host"
)

// LockFile is the name of the lock file in a data folder.
const LockFile = "otograph.lock"

// LockFolder locks the data folder dir for this process, the only service that
// may run on it, until the returned lock is closed. If it is already locked, the
// error wraps ErrLocked and names the process that holds it. The kernel releases
// the lock when the process ends, even if it is killed.
func LockFolder(dir string) (io.Closer, error) {
	path := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := host.TryLock(f); err != nil {
		holder, _ := os.ReadFile(path)
		f.Close()
		return nil, fmt.Errorf("lock %s: %w by process %s", dir, ErrLocked, strings.TrimSpace(string(holder)))
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0)
	}
	return f, nil
}
