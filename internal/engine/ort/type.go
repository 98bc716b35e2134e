package ort

import "github.com/otograph/otograph/internal/files/onnxfile"

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
