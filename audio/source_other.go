//go:build !unix

package audio

import "os"

// openAny opens path for reading.
func openAny(path string, follow bool) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !follow && info.Mode()&os.ModeSymlink != 0 {
		return nil, errLink
	}
	return os.Open(path)
}
