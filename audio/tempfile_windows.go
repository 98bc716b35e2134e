package audio

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// unnamedFile creates a file that the system deletes when it is closed.
func unnamedFile(dir string) (*os.File, error) {
	name := filepath.Join(cmp.Or(dir, os.TempDir()), fmt.Sprintf("otograph-%016x", rand.Uint64()))
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0o600)
}
