//go:build !linux && !windows

package native

import (
	"os"
	"path/filepath"
)

// File names of the libraries, as Apple's linker names versions.
const (
	WhisperFile     = "libwhisper.1.dylib"
	ONNXRuntimeFile = "libonnxruntime.1.dylib"
)

// ErrNoWhisper is why this system can't open libwhisper: see [ErrNoCgo].
var ErrNoWhisper = ErrNoCgo

// loaderFinds reports whether the loader searches systemDirs itself: it does
// not search Homebrew's.
const loaderFinds = false

// systemDirs returns Homebrew's folders on Apple silicon and on Intel.
func systemDirs() []string {
	dirs := []string{"/opt/homebrew/lib", "/usr/local/lib"}
	if prefix := os.Getenv("HOMEBREW_PREFIX"); filepath.IsAbs(prefix) {
		return append([]string{filepath.Join(prefix, "lib")}, dirs...)
	}
	return dirs
}
