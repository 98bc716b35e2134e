package ort

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
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

// maxWeights limits the bytes that Weights reads: small networks'.
const maxWeights = 16 << 20

// Weights reads a small model's stored tensors; see [onnxfile.ReadParts].
func Weights(src Source) (map[string]onnxfile.Tensor, error) {
	r, size, closeFile, err := src.readable()
	if err != nil {
		return nil, err
	}
	defer closeFile()
	if size > maxWeights {
		return nil, fmt.Errorf("%s: %w: more than %d bytes of weights", src, ErrInvalid, maxWeights)
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	parts, err := onnxfile.ReadParts(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return parts.Tensors, nil
}

// InspectModel reads a model's graph and returns it with its contract for a role (see
// ContractOf). Errors name the file.
func InspectModel(src Source, role models.Role, stated string) (*Graph, string, error) {
	g, err := Inspect(src)
	if err != nil {
		return nil, "", err
	}
	contract, err := ContractOf(g, role, stated)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", src, err)
	}
	return g, contract, nil
}

// ContractOf returns the contract of a model's graph for a role: the stated one
// or, if that is empty, the contract that the graph fits. An error wraps
// ErrContract; it does not name the file.
func ContractOf(g *Graph, role models.Role, stated string) (string, error) {
	known := strings.Join(models.ContractsOf(role), ", ")
	if stated != "" {
		if served, ok := models.ContractRole(stated); !ok || served != role {
			return "", fmt.Errorf("%w: role %s has no contract %q; it has %s", ErrContract, role, stated, known)
		}
		return stated, nil
	}
	found, err := models.Graph{Inputs: g.Inputs, Outputs: g.Outputs, Metadata: g.Metadata}.Recognize()
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: role %s: expected one of %s: %w", ErrContract, role, known, err)
	case found.Role != role:
		return "", fmt.Errorf("%w: role %s: expected one of %s; found a model for role %s (%s): it has %s",
			ErrContract, role, known, found.Role, found.Contract, g.IOList())
	case found.Contract == "":
		return "", fmt.Errorf("%w: role %s: it may be one of %s, whose features differ: "+
			"name the contract in otograph.json (or in Model.Contract); it has %s",
			ErrContract, role, strings.Join(found.Candidates, ", "), g.IOList())
	}
	return found.Contract, nil
}

// Type is the element type of a tensor, numbered as in ONNX's TensorProto.DataType.
type Type = onnxfile.Type

// The element types of a [Tensor].
// Others appear in an [Info] under their ONNX number.
const (
	AnyType = onnxfile.AnyType // in a [Contract]: no requirement; in an [Info]: not a tensor
	Float32 = onnxfile.Float32
	Int32   = onnxfile.Int32
	Int64   = onnxfile.Int64
)

// Info is an input or output: name, type, and shape with -1 for free.
type Info = onnxfile.Value
