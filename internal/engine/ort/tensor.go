package ort

import (
	"reflect"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Tensor is an array with a shape, in Go's memory: nothing has to be released.
// It shares its slice, which must not change while a Run reads it.
type Tensor struct {
	typ   Type
	shape []int64
	data  any // a slice of float32, int64, int32 or bool
}

// NewFloat32 returns a tensor of the shape over data. An empty shape is a
// scalar. The number of elements is checked when the tensor is used.
func NewFloat32(shape []int64, data []float32) *Tensor { return &Tensor{Float32, shape, data} }

// NewInt64 returns a tensor of 64-bit integers over data.
func NewInt64(shape []int64, data []int64) *Tensor { return &Tensor{Int64, shape, data} }

// NewInt32 returns a tensor of 32-bit integers over data.
func NewInt32(shape []int64, data []int32) *Tensor { return &Tensor{Int32, shape, data} }

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
func NewBool(shape []int64, data []bool) *Tensor { return &Tensor{onnxfile.Bool, shape, data} }

// Type returns the element type.
func (t *Tensor) Type() Type { return t.typ }

// Shape returns the size of each dimension; the caller must not change it.
func (t *Tensor) Shape() []int64 { return t.shape }

// Float32 returns the data of a float32 tensor; nil for another type.
func (t *Tensor) Float32() []float32 {
	data, _ := t.data.([]float32)
	return data
}

// Integers returns an int32 or int64 tensor's data as int64 (a copy of int32),
// for outputs whose width differs between exports; nil for other types.
func (t *Tensor) Integers() []int64 {
	if data, ok := t.data.([]int32); ok {
		return converted[int64](data)
	}
	data, _ := t.data.([]int64)
	return data
}

// Len returns the number of elements of the data.
func (t *Tensor) Len() int { return reflect.ValueOf(t.data).Len() }
