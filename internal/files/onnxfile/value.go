package onnxfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is an input or output of a graph.
type Value struct {
	Name string
	Type Type
	// Shape has one entry per dimension, -1 if it is free. It is nil if the
	// file declares no shape, and empty but not nil for a scalar.
	Shape []int64
}

// Rank returns the number of dimensions, or -1 if the file states none.
func (v Value) Rank() int {
	if v.Shape == nil {
		return -1
	}
	return len(v.Shape)
}

// Last returns the last dimension's size, or -1 if it is free or missing.
func (v Value) Last() int64 {
	if len(v.Shape) == 0 {
		return -1
	}
	return v.Shape[len(v.Shape)-1]
}

// String returns name, type and shape: input float32[?,576].
func (v Value) String() string { return v.Name + " " + v.Type.String() + FormatShape(v.Shape) }

// FormatShape formats a shape for a message: [?,80], or […] for nil.
func FormatShape(shape []int64) string {
	if shape == nil {
		return "[…]"
	}
	words := make([]string, len(shape))
	for i, d := range shape {
		if words[i] = strconv.FormatInt(d, 10); d < 0 {
			words[i] = "?"
		}
	}
	return "[" + strings.Join(words, ",") + "]"
}

// FormatValues lists at most a dozen values for an error message (streaming
// models have dozens of states), or "none" if the list is empty.
func FormatValues(values []Value) string {
	const most = 12
	if len(values) == 0 {
		return "none"
	}
	var words []string
	for _, v := range values[:min(len(values), most)] {
		words = append(words, v.String())
	}
	if len(values) > most {
		words = append(words, fmt.Sprintf("and %d more", len(values)-most))
	}
	return strings.Join(words, ", ")
}

// Find returns the value with a name.
func Find(values []Value, name string) (Value, bool) {
	i := slices.IndexFunc(values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return values[i], true
}

// Elements returns the product of a shape's dimensions, and false if a
// dimension is negative or the product overflows.
func Elements(shape []int64) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// Type is a tensor's element type, as in ONNX's TensorProto.DataType.
type Type int32

// The element types with a name; a [Value] may have others, by their number.
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

// types holds each type's name, and the width of an element in bytes; 0 if the
// width is not a fixed whole number.
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

// Size returns an element's width in bytes, or 0 if it has no fixed width.
func (t Type) Size() int64 { return types[t].size }

// tensor holds the properties of a TensorProto.
type tensor struct {
	name  string
	typ   Type
	shape []int64
}

// read reads one field; it ignores the data and unknown fields.
func (t *tensor) read(f field) (err error) {
	switch f.num {
	case 1:
		if f.kind == wireVarint {
			t.shape = append(t.shape, int64(f.value))
		}
		for p := f.body; p.more() && len(t.shape) <= maxRank; { // packed
			d, err := p.varint()
			if err != nil {
				return err
			}
			t.shape = append(t.shape, int64(d))
		}
		if len(t.shape) > maxRank {
			return fmt.Errorf("more than %d dimensions", maxRank)
		}
	case 2:
		t.typ = Type(min(f.value, math.MaxInt32))
	case 8:
		t.name, err = f.text(maxName)
	}
	return err
}
