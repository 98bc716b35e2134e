package onnxfile

import "fmt"

// Type is the element type of a tensor, numbered as in ONNX's
// TensorProto.DataType.
type Type int32

// The element types with a name. Others appear in a [Value] under their ONNX
// number.
const (
	AnyType  Type = 0 // of a value that is not a tensor
	Float32  Type = 1
	Uint8    Type = 2
	Int8     Type = 3
	Uint16   Type = 4
	Int16    Type = 5
	Int32    Type = 6
	Int64    Type = 7
	String   Type = 8
	Bool     Type = 9
	Float16  Type = 10
	Float64  Type = 11
	Uint32   Type = 12
	Uint64   Type = 13
	BFloat16 Type = 16
)

var typeNames = map[Type]string{
	AnyType: "any", Float32: "float32", Uint8: "uint8", Int8: "int8", Uint16: "uint16", Int16: "int16", Int32: "int32",
	Int64: "int64", String: "string", Bool: "bool", Float16: "float16", Float64: "float64", Uint32: "uint32", Uint64: "uint64",
	BFloat16: "bfloat16",
}

// String returns the usual name: float32, int64 …
func (t Type) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return fmt.Sprintf("type%d", int32(t))
}

// Size returns the width of one element in bytes, or 0 if it is not a fixed
// whole number.
func (t Type) Size() int64 {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float32, Int32, Uint32:
		return 4
	case Float64, Int64, Uint64:
		return 8
	default:
		return 0
	}
}
