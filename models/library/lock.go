package library

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/models"
)

// errLocked marks a model folder that another pull or import is using.
var errLocked = errors.New("model folder in use")

// lock creates and locks the folder until the process ends in any way.
func (s *Store) lock() (unlock func(), err error) {
	if s.Dir == "" {
		return nil, fmt.Errorf("%w: no model folder is named", models.ErrMissing)
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, partials), 0o755); err != nil {
		return nil, fmt.Errorf("model folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, partials, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("model folder: %w", err)
	}
	if err := host.TryLock(f); err != nil {
		f.Close()
		if errors.Is(err, host.ErrLocked) {
			return nil, fmt.Errorf("%w: %s: another process is pulling or importing; wait for it", errLocked, s.Dir)
		}
		return nil, fmt.Errorf("model folder: lock: %w", err)
	}
	return func() { f.Close() }, nil
}
