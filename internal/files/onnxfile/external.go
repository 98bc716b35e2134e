package onnxfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// externalData is the location of one tensor's data, in bytes; a length of -1
// means that the file does not state it.
type externalData struct {
	location       string
	offset, length int64
}

// CheckExternal checks that the weight files named in the header are in dir,
// the model's folder, and are long enough for every tensor. An error wraps
// [ErrInvalid] or comes from the file system.
func (h *Header) CheckExternal(dir string) error {
	err := h.checkExternal(dir)
	var failed *fs.PathError
	if err == nil || errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

func (h *Header) checkExternal(dir string) error {
	sizes := map[string]int64{}
	for _, d := range h.parts {
		if d.location == "" || strings.ContainsRune(d.location, 0) || !filepath.IsLocal(d.location) {
			return fmt.Errorf("it names weights in %q: only files in the model's own folder are read", d.location)
		}
		size, ok := sizes[d.location]
		if !ok {
			path := filepath.Join(dir, d.location)
			st, err := os.Stat(path) // links are followed, because model stores often consist of them
			if err != nil {
				return fmt.Errorf("its weights: %w", err)
			}
			if !st.Mode().IsRegular() {
				return fmt.Errorf("its weights: %s is not a regular file", path)
			}
			size = st.Size()
			sizes[d.location] = size
		}
		if d.offset > size || d.length > size-d.offset {
			return fmt.Errorf("its weights: %s has %d bytes, %d at %d are named", d.location, size, d.length, d.offset)
		}
	}
	return nil
}
