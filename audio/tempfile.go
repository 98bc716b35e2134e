package audio

import (
	"errors"
	"fmt"
	"os"
)

// tempFile creates an unnamed file in dir, so that nothing remains on disk
// however the process ends.
func tempFile(dir string) (*os.File, error) {
	if f, err := unnamedFile(dir); err == nil || !errors.Is(err, errors.ErrUnsupported) {
		return f, err
	}
	f, err := os.CreateTemp(dir, "otograph-*")
	if err != nil {
		return nil, fmt.Errorf("audio: temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("audio: unlink temporary file: %w", err)
	}
	return f, nil
}
