package native

import (
	"fmt"
	"os"
)

// File names of the libraries.
const (
	WhisperFile     = "whisper.dll"
	ONNXRuntimeFile = "onnxruntime.dll"
)

// ErrNoWhisper is returned if libwhisper can't be opened. It wraps ErrMissing.
var ErrNoWhisper = fmt.Errorf("%w: on Windows libwhisper is not opened, so no GPU can be used", ErrMissing)

// loaderFinds reports whether the loader searches systemDirs itself.
const loaderFinds = false

// systemDirs returns nothing: Windows' system folders contain an older ONNX
// Runtime that can't be used.
func systemDirs() []string { return nil }

// ownerOf returns the owner of a file on systems with numeric users.
func ownerOf(os.FileInfo) (user int, ok bool) { return 0, false }

// openToAll returns false: Go makes up the mode on these systems, so it can't
// show whether a file is world-writable.
func openToAll(os.FileInfo) bool { return false }
