package ort

import "github.com/otograph/otograph/internal/onnxfile"

// Type is the element type of a tensor, numbered as in ONNX's TensorProto.DataType.
type Type = onnxfile.Type

// The element types of the inputs and outputs of this project's model families.
// Others appear in an [Info] under their ONNX number.
const (
	AnyType  = onnxfile.AnyType // in a [Contract]: no requirement; in an [Info]: not a tensor
	Float32  = onnxfile.Float32
	Uint8    = onnxfile.Uint8
	Int8     = onnxfile.Int8
	Uint16   = onnxfile.Uint16
	Int16    = onnxfile.Int16
	Int32    = onnxfile.Int32
	Int64    = onnxfile.Int64
	String   = onnxfile.String
	Bool     = onnxfile.Bool
	Float16  = onnxfile.Float16
	Float64  = onnxfile.Float64
	Uint32   = onnxfile.Uint32
	Uint64   = onnxfile.Uint64
	BFloat16 = onnxfile.BFloat16
)

// Info describes an input or an output of a model: name, type, and shape with -1 for
// a free dimension.
type Info = onnxfile.Value
