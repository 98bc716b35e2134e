package onnxfile

import (
	"fmt"
	"math"
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

// Last returns the size of the last dimension, or -1 if it is free or unknown,
// or for a scalar.
func (v Value) Last() int64 {
	if len(v.Shape) == 0 {
		return -1
	}
	return v.Shape[len(v.Shape)-1]
}

// String returns name, type and shape, with free dimensions as "?": input
// float32[?,576].
func (v Value) String() string { return v.Name + " " + v.Type.String() + FormatShape(v.Shape) }

// FormatShape formats a shape for an error message: [?,80], or […] for a nil
// one.
func FormatShape(shape []int64) string {
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

// FormatValues lists at most a dozen values for an error message (streaming
// models have dozens of states), or "none" if the list is empty.
func FormatValues(values []Value) string {
	const most = 12
	if len(values) == 0 {
		return "none"
	}
	var words []string
	for i, v := range values {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(values)-most))
			break
		}
		words = append(words, v.String())
	}
	return strings.Join(words, ", ")
}

// Find returns the value with a name.
func Find(values []Value, name string) (Value, bool) {
	for _, v := range values {
		if v.Name == name {
			return v, true
		}
	}
	return Value{}, false
}

// Elements returns the product of a shape's dimensions, and false if one is
// negative or the product overflows.
func Elements(shape []int64) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d > 0 && n > math.MaxInt64/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}
