// Package onnxfile reads the header of an ONNX file (inputs, outputs, metadata,
// external data files) by walking its protobuf, without ONNX Runtime and
// without loading the weights. It detects a hostile or wrong file before native
// code sees it. Every count, length and depth in a file is limited.
//
// Field numbers are those of onnx.proto3 of the ONNX project.
package onnxfile

import "errors"

// ErrInvalid marks bytes that are not an ONNX model: not a protobuf, truncated,
// without a graph or outputs, or with impossible sizes.
var ErrInvalid = errors.New("not a usable ONNX model")

// Header holds the facts that a file states about itself.
type Header struct {
	// Inputs and Outputs are the graph's, in the file's order. Weights that
	// files before format version 4 repeat among the inputs are left out.
	Inputs, Outputs []Value
	// Metadata holds the model's own key-value pairs.
	Metadata map[string]string
	// Producer is the program that wrote the file, according to the file.
	Producer string
	// IRVersion is the version of the file format.
	IRVersion int64
	// Opsets is the version of the operator set by domain; "" is ONNX itself.
	Opsets map[string]int64
	// External lists the files with weights that the model refers to, as named
	// in it, each once, including those of subgraphs.
	External []string

	parts []externalData
}

// Signature returns the inputs and outputs on one line, for error messages.
func (h *Header) Signature() string { return Signature(h.Inputs, h.Outputs) }

// Signature formats inputs and outputs on one line, for error messages.
func Signature(inputs, outputs []Value) string {
	return "inputs " + FormatValues(inputs) + "; outputs " + FormatValues(outputs)
}
