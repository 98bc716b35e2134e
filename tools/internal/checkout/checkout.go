// Package checkout finds the repository in which a tool runs.
package checkout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Enter changes to the root of the repository, so that a tool's paths are
// relative to it even if the tool starts elsewhere ("go run -C tools" starts it
// in tools). The working directory must be in the repository.
func Enter() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "tools", "go.mod")); err == nil {
			return os.Chdir(at)
		}
		if at == filepath.Dir(at) {
			return fmt.Errorf("%s: expected a folder of Otograph's repository (tools/go.mod in it or above it)", dir)
		}
	}
}
