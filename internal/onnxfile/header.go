// Package onnxfile reads what an ONNX file says about itself (inputs, outputs,
// metadata, external data files) by walking its protobuf, without ONNX Runtime
// and without loading the weights: a hostile or mistaken file is recognised
// before native code sees it. Every count, length and depth that a file states
// has a limit.
//
// Field numbers are those of onnx.proto3 of the ONNX project.
package onnxfile

import "errors"

// ErrInvalid marks bytes that are not an ONNX model: not a protobuf, cut short, one
// without a graph or outputs, or one that states impossible sizes.
var ErrInvalid = errors.New("not a usable ONNX model")

// Header is what a file says about itself.
type Header struct {
	// Inputs and Outputs are the graph's, in the file's order. Weights that files
	// before format version 4 repeat among the inputs are left out.
	Inputs, Outputs []Value
	// Metadata holds the model's own key-value pairs.
	Metadata map[string]string
	// Producer is the program that wrote the file, by its own word.
	Producer string
	// IRVersion is the version of the file format.
	IRVersion int64
	// Opsets is the operator set's version by domain; "" is ONNX's own.
	Opsets map[string]int64
	// External lists the files beside the model that hold weights, as named in it,
	// each once, those of subgraphs too.
	External []string

	parts []externalData
}

// Signature is the inputs and outputs on one line, for error texts.
func (h *Header) Signature() string { return Signature(h.Inputs, h.Outputs) }

// Signature writes inputs and outputs on one line, for error texts.
func Signature(inputs, outputs []Value) string {
	return "inputs " + FormatValues(inputs) + "; outputs " + FormatValues(outputs)
}
