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

// Last returns the last dimension's size, or -1 if free, unknown or none.
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

// Elements returns the product of a shape's dimensions, and false if one is
// negative or the product overflows.
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
