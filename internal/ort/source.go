package ort

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Source is where a model's bytes are: a file (needed where its weights lie in a
// second file) or memory.
type Source struct {
	Path string // file name; taken where Data is nil
	Data []byte // the model itself
	Name string // for error texts; the file's name where empty
	Role string // what the model is for ("vad", "embedder" …), for error texts
}

// String names the model for an error text: role and name.
func (s Source) String() string {
	name := s.Name
	if name == "" {
		name = filepath.Base(s.Path)
	}
	if s.Path == "" && s.Name == "" {
		name = "model in memory"
	}
	if s.Role != "" {
		return s.Role + " model " + name
	}
	return name
}

// Options of a session.
type Options struct {
	// Threads is how many cores one Run uses; 0 and 1 mean the calling one alone.
	Threads int
	// Outputs are the only outputs to be computed; empty means all that can be read
	// (float32, int64, int32 and bool). Run can then ask for these only.
	Outputs []string
}

// readable opens the bytes of a source for the walk.
func (s Source) readable() (r io.ReaderAt, size int64, closeFile func(), err error) {
	if s.Data != nil {
		return bytes.NewReader(s.Data), int64(len(s.Data)), func() {}, nil
	}
	if s.Path == "" {
		return nil, 0, nil, fmt.Errorf("%s: %w: neither a path nor bytes are given", s, ErrInvalid)
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%s: %w", s, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file", ErrInvalid, s.Path)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, nil, fmt.Errorf("%s: %w", s, err)
	}
	return f, st.Size(), func() { _ = f.Close() }, nil
}
