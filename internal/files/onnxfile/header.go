// Package onnxfile reads and writes ONNX files. It reads the header of one
// (inputs, outputs, metadata, external data files) by walking its protobuf,
// without ONNX Runtime and without loading the weights. It detects a hostile or
// wrong file before native code sees it. Every count, length and depth in a file
// is limited.
//
// Field numbers follow onnx.proto3 of the ONNX project.
package onnxfile

import "errors"

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
