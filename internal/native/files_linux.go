package native

// File names of the libraries: the sonames that the code is written against.
const (
	WhisperFile     = "libwhisper.so.1"
	ONNXRuntimeFile = "libonnxruntime.so.1"
)

// ErrNoWhisper says why libwhisper can't be opened where nothing can: see [ErrNoCgo].
var ErrNoWhisper = ErrNoCgo

// loaderFinds says that the loader looks in systemDirs by itself.
const loaderFinds = true

// systemDirs returns the folders in which the dynamic loader looks without being told.
func systemDirs() []string {
	return []string{
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
		"/lib64", "/usr/lib64", "/lib", "/usr/lib",
		"/usr/local/lib/x86_64-linux-gnu", "/usr/local/lib64", "/usr/local/lib",
	}
}
