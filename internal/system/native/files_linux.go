package native

// File names of the libraries: the sonames that the code is written for.
const (
	WhisperFile     = "libwhisper.so.1"
	ONNXRuntimeFile = "libonnxruntime.so.1"
)

// ErrNoWhisper is returned if libwhisper can't be opened: see [ErrNoCgo].
var ErrNoWhisper = ErrNoCgo

// loaderFinds reports that the loader searches systemDirs itself.
const loaderFinds = true

// systemDirs returns the folders that the dynamic loader searches by default.
func systemDirs() []string {
	return []string{
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
		"/lib64", "/usr/lib64", "/lib", "/usr/lib",
		"/usr/local/lib/x86_64-linux-gnu", "/usr/local/lib64", "/usr/local/lib",
	}
}
