// Package onnxfile reads what an ONNX file says about itself (inputs, outputs,
// metadata, external data files) by walking its protobuf, without ONNX Runtime
// and without loading the weights: a hostile or mistaken file is recognised
// before native code sees it.
//
// Field numbers are those of onnx.proto (ONNX, onnx/onnx.proto3).
package onnxfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ErrNotONNX marks bytes that are not an ONNX model: not a protobuf, cut short,
// or one without a graph, inputs or outputs.
var ErrNotONNX = errors.New("not an ONNX model")

// Type is the element type of a tensor, numbered as TensorProto.DataType.
type Type int32

// The element types that speech models use.
const (
	Undefined Type = 0
	Float32   Type = 1
	Uint8     Type = 2
	Int8      Type = 3
	Int32     Type = 6
	Int64     Type = 7
	String    Type = 8
	Bool      Type = 9
	Float16   Type = 10
	Float64   Type = 11
)

// String is the type's usual name.
func (t Type) String() string {
	switch t {
	case Undefined:
		return "undefined"
	case Float32:
		return "float32"
	case Uint8:
		return "uint8"
	case Int8:
		return "int8"
	case Int32:
		return "int32"
	case Int64:
		return "int64"
	case String:
		return "string"
	case Bool:
		return "bool"
	case Float16:
		return "float16"
	case Float64:
		return "float64"
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Value is an input or output of the graph.
type Value struct {
	Name string
	// Type is Undefined for a value that is not a tensor.
	Type Type
	// Shape holds one number per dimension, -1 for a free or named one; nil when
	// the file does not tell the rank (an empty non-nil Shape is a scalar).
	Shape []int64
}

// Rank is the number of dimensions; -1 when the file does not tell.
func (v Value) Rank() int {
	if v.Shape == nil {
		return -1
	}
	return len(v.Shape)
}

// Last is the size of the last dimension; -1 when free, unknown or a scalar.
func (v Value) Last() int64 {
	if len(v.Shape) == 0 {
		return -1
	}
	return v.Shape[len(v.Shape)-1]
}

// String is like "x float32[?,?,80]".
func (v Value) String() string {
	if v.Shape == nil {
		return fmt.Sprintf("%s %s[…]", v.Name, v.Type)
	}
	dims := make([]string, len(v.Shape))
	for i, d := range v.Shape {
		if dims[i] = "?"; d >= 0 {
			dims[i] = fmt.Sprint(d)
		}
	}
	return fmt.Sprintf("%s %s[%s]", v.Name, v.Type, strings.Join(dims, ","))
}

// Header is what a file says about itself.
type Header struct {
	// IRVersion is the version of the file format.
	IRVersion int64
	// Opset is the version of the default operator set.
	Opset int64
	// Inputs are the graph's inputs in its order, without those that are also
	// initializers (files of IR version 3 repeat them).
	Inputs  []Value
	Outputs []Value
	// Metadata holds the model's own key-value pairs.
	Metadata map[string]string
	// External lists the external data files that the graph names, as written,
	// each once.
	External []string
	// Nodes is the number of nodes of the main graph.
	Nodes int
}

// Input returns the first input that has one of the names.
func (h *Header) Input(names ...string) (Value, bool) { return find(h.Inputs, names) }

// Output returns the first output that has one of the names.
func (h *Header) Output(names ...string) (Value, bool) { return find(h.Outputs, names) }

func find(values []Value, names []string) (Value, bool) {
	for _, v := range values {
		if slices.Contains(names, v.Name) {
			return v, true
		}
	}
	return Value{}, false
}

// Signature is the inputs and outputs on one line, for error texts.
func (h *Header) Signature() string {
	return "inputs " + list(h.Inputs) + "; outputs " + list(h.Outputs)
}

// list writes at most a dozen values: streaming models have scores of states.
func list(values []Value) string {
	const most = 12
	var s []string
	for i, v := range values {
		if i == most {
			s = append(s, fmt.Sprintf("and %d more", len(values)-most))
			break
		}
		s = append(s, v.String())
	}
	return strings.Join(s, ", ")
}

// Open reads the header of a file.
func Open(path string) (*Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrNotONNX, path)
	}
	return Read(f, info.Size())
}

// Parse reads the header of a model in memory.
func Parse(data []byte) (*Header, error) {
	return Read(bytes.NewReader(data), int64(len(data)))
}
