package onnxfile

import "fmt"

// Type is a tensor's element type, as in ONNX's TensorProto.DataType.
type Type int32

// The element types with a name; a [Value] has others by number.
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

// types holds the names of the types, and the widths of their elements in
// bytes; 0 if it is not a fixed whole number.
var types = map[Type]struct {
	name string
	size int64
}{
	AnyType: {"any", 0}, String: {"string", 0}, Bool: {"bool", 1},
	Uint8: {"uint8", 1}, Uint16: {"uint16", 2}, Uint32: {"uint32", 4}, Uint64: {"uint64", 8},
	Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4}, Int64: {"int64", 8},
	BFloat16: {"bfloat16", 2}, Float16: {"float16", 2}, Float32: {"float32", 4}, Float64: {"float64", 8},
}

// String returns the usual name: float32, int64 …
func (t Type) String() string {
	if known, ok := types[t]; ok {
		return known.name
	}
	return fmt.Sprintf("type%d", int32(t))
}

// Size returns an element's width in bytes, or 0 if it has no fixed one.
func (t Type) Size() int64 { return types[t].size }
