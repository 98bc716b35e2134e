//go:build cgo

package ort

import (
	"fmt"
	"runtime"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// value wraps a tensor's memory for the native library. It pins the memory,
// because the library keeps the address until the value is destroyed.
func (t *Tensor) value(pin *runtime.Pinner) (onnx.Value, error) {
	if len(t.shape) == 0 {
		return t.scalarValue()
	}
	shape := onnx.Shape(t.shape)
	switch t.typ {
	case Float32:
		return pinned(pin, shape, t.f32)
	case Int64:
		return pinned(pin, shape, t.i64)
	case Int32:
		return pinned(pin, shape, t.i32)
	case onnxfile.Bool:
		return pinned(pin, shape, t.bits)
	default:
		return nil, fmt.Errorf("tensors of type %s are not supported", t.typ)
	}
}

func pinned[T onnx.TensorData](pin *runtime.Pinner, shape onnx.Shape, data []T) (onnx.Value, error) {
	if len(data) > 0 {
		pin.Pin(&data[0])
	}
	return onnx.NewTensor(shape, data)
}

// scalarValue returns a native value of rank 0, which owns its single element.
func (t *Tensor) scalarValue() (onnx.Value, error) {
	switch t.typ {
	case Float32:
		return onnx.NewScalar(t.f32[0])
	case Int64:
		return onnx.NewScalar(t.i64[0])
	case Int32:
		return onnx.NewScalar(t.i32[0])
	default:
		return nil, fmt.Errorf("scalars of type %s are not supported", t.typ)
	}
}

// fromValue takes the data of an output that the library allocated (the module
// has already copied it into Go's memory).
func fromValue(v onnx.Value) (*Tensor, error) {
	shape := []int64(v.GetShape())
	switch v := v.(type) {
	case *onnx.Tensor[float32]:
		return NewFloat32(shape, v.GetData()), nil
	case *onnx.Tensor[int64]:
		return NewInt64(shape, v.GetData()), nil
	case *onnx.Tensor[int32]:
		return NewInt32(shape, v.GetData()), nil
	}
	return nil, fmt.Errorf("%T is a kind of output that is not supported", v)
}
