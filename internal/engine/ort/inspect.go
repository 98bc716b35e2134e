package ort

import (
	"fmt"
	"path/filepath"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Graph describes a model as declared by its file.
type Graph struct {
	onnxfile.Header
	source string // role and name, for error messages
}

// Inspect reads a model's inputs, outputs and metadata without ONNX Runtime and
// without reading its weights (package internal/files/onnxfile walks the bytes). The
// error wraps [ErrInvalid] for bytes that are not an ONNX model, are truncated,
// have impossible sizes, or name weight files outside the model's folder. A
// model with external weights needs a path.
func Inspect(src Source) (*Graph, error) {
	r, size, closeFile, err := src.readable()
	if err != nil {
		return nil, err
	}
	defer closeFile()
	h, err := onnxfile.Read(r, size)
	switch {
	case err != nil:
	case len(h.External) == 0:
	case src.Data != nil:
		err = fmt.Errorf("%w: its weights lie in a second file (%s): open it by its path", ErrInvalid, h.External[0])
	default:
		err = h.CheckExternal(filepath.Dir(src.Path))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return &Graph{*h, src.String()}, nil
}

// Weights reads a small model's stored float tensors; see [onnxfile.Weights].
func Weights(src Source) (map[string]onnxfile.Weight, error) {
	r, size, closeFile, err := src.readable()
	if err != nil {
		return nil, err
	}
	defer closeFile()
	w, err := onnxfile.Weights(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return w, nil
}
