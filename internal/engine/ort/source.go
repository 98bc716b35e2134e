package ort

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/models"
)

// Source is the location of a model's bytes: a file (required if its weights
// are in a second file) or memory.
type Source struct {
	Path string // file name; used if Data is nil
	Data []byte // the model itself
	Name string // for error messages; default: the file's name
	Role string // the model's role ("vad", "embedder" …), for error messages
}

// SourceOf returns a model file for ONNX Runtime: its path, or its bytes.
func SourceOf(m *models.Model, f models.File) (Source, error) {
	src := Source{Path: f.Path, Name: f.Name, Role: string(m.Role)}
	if f.Data == nil && f.Path == "" {
		return src, fmt.Errorf("%s model %s: %w: it has no file", m.Role, m.Name, models.ErrMissing)
	}
	if f.Data != nil {
		data, err := f.Data()
		if err != nil {
			return src, fmt.Errorf("%s model %s: %w", m.Role, m.Name, err)
		}
		src.Path, src.Data = "", data
	}
	return src, nil
}

// String names the model for an error message: role and name.
func (s Source) String() string {
	name := cmp.Or(s.Name, "model in memory")
	if s.Name == "" && s.Path != "" {
		name = filepath.Base(s.Path)
	}
	if s.Role != "" {
		return s.Role + " model " + name
	}
	return name
}

// Options configures a session.
type Options struct {
	// Threads is the cores that one Run uses; 0 and 1 mean the caller's.
	Threads int
	// Outputs are the only outputs to compute, and Run can only return these.
	// Empty means all that can be read (float32, int64 and int32, no scalars).
	Outputs []string
	// Expose, if set, is the end of node names: the first input of each such
	// node in a branch of the graph becomes an output (onnxfile.Exposed). A
	// model whose weights are in a second file keeps its own outputs.
	Expose string
	// Rebuild, if set, returns another graph with the model's weights, or nil to
	// open the model as it is. A model whose weights are in a second file is
	// opened as it is.
	Rebuild func(*onnxfile.Parts) *onnxfile.Graph
	// Arena keeps the memory between runs: faster, for graphs of small inputs.
	Arena bool
}

// readable opens the bytes of a source for reading.
func (s Source) readable() (r io.ReaderAt, size int64, closeFile func(), err error) {
	if s.Data != nil {
		return bytes.NewReader(s.Data), int64(len(s.Data)), func() {}, nil
	}
	if s.Path == "" {
		return nil, 0, nil, fmt.Errorf("%s: %w: neither a path nor bytes are given", s, ErrInvalid)
	}
	f, size, err := weightfile.Open(s.Path)
	if errors.Is(err, weightfile.ErrNotFile) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%s: %w", s, err)
	}
	return f, size, func() { _ = f.Close() }, nil
}
