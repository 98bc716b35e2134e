package native

import "fmt"

// File names of the libraries.
const (
	WhisperFile     = "whisper.dll"
	ONNXRuntimeFile = "onnxruntime.dll"
)

// ErrNoWhisper says that libwhisper can't be opened on this system. It wraps
// ErrMissing.
var ErrNoWhisper = fmt.Errorf("%w: on Windows libwhisper is not opened, so there is no standard tier", ErrMissing)

// loaderFinds says that the loader looks in systemDirs by itself.
const loaderFinds = false

// systemDirs returns nothing: Windows' own folders hold an older ONNX Runtime, which
// does not serve.
func systemDirs() []string { return nil }
