// Package onnxfile reads and writes ONNX files. It reads a file's header
// (inputs, outputs, metadata, external data files) by walking its protobuf,
// without ONNX Runtime and without loading the weights. It detects a hostile or
// wrong file before native code sees it. Every count, length and depth in a
// file is limited.
//
// Field numbers follow onnx.proto3 of the ONNX project.
package onnxfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrInvalid marks bytes that are not an ONNX model: not a protobuf, truncated,
// without a graph or outputs, or with impossible sizes.
var ErrInvalid = errors.New("not a usable ONNX model")

// Header holds the properties that a file declares.
type Header struct {
	// Inputs and Outputs are the graph's, in the file's order. They exclude the
	// weights that files before format version 4 repeat among the inputs.
	Inputs, Outputs []Value
	// Metadata holds the model's own key-value pairs.
	Metadata map[string]string
	// IRVersion is the version of the file format.
	IRVersion int64
	// Opsets is the version of the operator set by domain; "" is ONNX itself.
	Opsets map[string]int64
	// External lists the weight files that the model and its subgraphs refer
	// to, as named in the model, each once.
	External []string

	parts []externalData
}

// Signature formats inputs and outputs on one line, for error messages.
func Signature(inputs, outputs []Value) string {
	return "inputs " + FormatValues(inputs) + "; outputs " + FormatValues(outputs)
}

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
