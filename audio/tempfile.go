package audio

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// memoryLimit bounds a file in memory: two hours of samples.
const memoryLimit = 512 << 20 // bytes

// tempFile creates an unnamed file in dir. If dir is missing or read-only, the
// file is in memory, with room for memoryLimit bytes.
func tempFile(dir string) (*os.File, error) {
	f, err := diskFile(dir)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EROFS) {
		if f, missing := memoryFile(); missing == nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("audio: temporary file: %w; name another folder by TMPDIR", err)
}

func diskFile(dir string) (*os.File, error) {
	if f, err := unnamedFile(dir); err == nil || !errors.Is(err, errors.ErrUnsupported) {
		return f, err
	}
	f, err := os.CreateTemp(dir, "otograph-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// unwritten returns the error of a failed write to a temporary file.
func unwritten(name, what string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("audio: %q: %s need more than %d MiB, and the folder for temporary files cannot be written to; name another one by TMPDIR: %w", name, what, memoryLimit>>20, syscall.ENOSPC)
	}
	return fmt.Errorf("audio: %q: write %s to the temporary folder: %w", name, what, err)
}
