package ort

import (
	"fmt"
	"strings"
)

// Type is the element type of a tensor, numbered as in ONNX's TensorProto.DataType.
type Type int32

// The element types that models of this project's families carry in or out. Others
// appear in an [Info] under their ONNX number.
const (
	AnyType  Type = 0 // in a [Contract]: no demand; in an [Info]: not a tensor
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

// String gives the usual name: float32, int64 …
func (t Type) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return fmt.Sprintf("type%d", int32(t))
}

// size is the width of one element in bytes, 0 where it is not a whole fixed number.
func (t Type) size() int64 {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float32, Int32, Uint32:
		return 4
	case Float64, Int64, Uint64:
		return 8
	}
	return 0
}

// Info describes an input or an output of a model.
type Info struct {
	Name string
	Type Type
	// Shape has one entry per dimension, -1 where it is free. It is nil where the
	// file states no shape at all, and empty but not nil for a scalar.
	Shape []int64
}

// Rank is the number of dimensions, -1 where the file states none.
func (i Info) Rank() int {
	if i.Shape == nil {
		return -1
	}
	return len(i.Shape)
}

// String writes name, type and shape, free dimensions as "?": input float32[?,576].
func (i Info) String() string { return i.Name + " " + i.Type.String() + shapeString(i.Shape) }

func shapeString(shape []int64) string {
	if shape == nil {
		return "[…]"
	}
	var b strings.Builder
	b.WriteByte('[')
	for k, d := range shape {
		if k > 0 {
			b.WriteByte(',')
		}
		if d < 0 {
			b.WriteByte('?')
		} else {
			fmt.Fprint(&b, d)
		}
	}
	b.WriteByte(']')
	return b.String()
}

func infoList(list []Info) string {
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = v.String()
	}
	return strings.Join(words, ", ")
}
