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

// ErrNoWhisper says why libwhisper can't be opened where nothing can: see [ErrNoCgo].
var ErrNoWhisper = ErrNoCgo

// loaderFinds says that the loader looks in systemDirs by itself: not in Homebrew's.
const loaderFinds = false

// systemDirs returns the folders of Homebrew, on Apple's processors and on Intel's.
func systemDirs() []string {
	dirs := []string{"/opt/homebrew/lib", "/usr/local/lib"}
	if prefix := os.Getenv("HOMEBREW_PREFIX"); filepath.IsAbs(prefix) {
		return append([]string{filepath.Join(prefix, "lib")}, dirs...)
	}
	return dirs
}
