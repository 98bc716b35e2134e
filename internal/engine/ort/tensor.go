package ort

import "github.com/otograph/otograph/internal/files/onnxfile"

// Tensor is an array with a shape, in Go's memory: nothing has to be released.
// It shares its slice, which must not change while a Run reads it.
type Tensor struct {
	typ   Type
	shape []int64
	f32   []float32
	i64   []int64
	i32   []int32
	bits  []bool
}

// NewFloat32 returns a tensor of the shape over data. An empty shape is a
// scalar. The number of elements is checked when the tensor is used.
func NewFloat32(shape []int64, data []float32) *Tensor {
	return &Tensor{typ: Float32, shape: shape, f32: data}
}

// NewInt64 returns a tensor of 64-bit integers over data.
func NewInt64(shape []int64, data []int64) *Tensor {
	return &Tensor{typ: Int64, shape: shape, i64: data}
}

// NewInt32 returns a tensor of 32-bit integers over data.
func NewInt32(shape []int64, data []int32) *Tensor {
	return &Tensor{typ: Int32, shape: shape, i32: data}
}

// NewIntegers returns a tensor of values for an input of int32 or int64; without
// a shape it is a vector.
func NewIntegers(in Info, values []int, shape ...int64) *Tensor {
	if len(shape) == 0 {
		shape = []int64{int64(len(values))}
	}
	if in.Type == Int32 {
		return NewInt32(shape, converted[int32](values))
	}
	return NewInt64(shape, converted[int64](values))
}

func converted[T, S int | int32 | int64](values []S) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return out
}

// NewBool returns a tensor of truth values over data.
func NewBool(shape []int64, data []bool) *Tensor {
	return &Tensor{typ: onnxfile.Bool, shape: shape, bits: data}
}

// Type returns the element type.
func (t *Tensor) Type() Type { return t.typ }

// Shape returns the size of each dimension; the caller must not change it.
func (t *Tensor) Shape() []int64 { return t.shape }

// Float32 returns the data of a float32 tensor; nil for another type.
func (t *Tensor) Float32() []float32 { return t.f32 }

// Integers returns an int32 or int64 tensor's data as int64 (a copy of int32),
// for outputs whose width differs between exports; nil for other types.
func (t *Tensor) Integers() []int64 {
	if t.typ == Int32 {
		return converted[int64](t.i32)
	}
	return t.i64
}

// Len returns the number of elements of the data.
func (t *Tensor) Len() int {
	switch t.typ {
	case Float32:
		return len(t.f32)
	case Int64:
		return len(t.i64)
	case onnxfile.Bool:
		return len(t.bits)
	default:
		return len(t.i32)
	}
}
