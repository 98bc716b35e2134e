//go:build cgo

package ort

import (
	"fmt"
	"runtime"

	onnx "github.com/yalue/onnxruntime_go"
)

// value wraps a tensor's memory for the native library. It pins the memory,
// because the library keeps the address until the value is destroyed.
func (t *Tensor) value(pin *runtime.Pinner) (onnx.Value, error) {
	switch data := t.data.(type) {
	case []float32:
		return pinned(pin, t.shape, data)
	case []int64:
		return pinned(pin, t.shape, data)
	case []int32:
		return pinned(pin, t.shape, data)
	case []bool:
		return pinned(pin, t.shape, data)
	}
	return nil, fmt.Errorf("tensors of type %s are not supported", t.typ)
}

// pinned returns a native value; a value of rank 0 owns its single element.
func pinned[T onnx.TensorData](pin *runtime.Pinner, shape []int64, data []T) (onnx.Value, error) {
	if len(shape) == 0 {
		return onnx.NewScalar(data[0])
	}
	if len(data) > 0 {
		pin.Pin(&data[0])
	}
	return onnx.NewTensor(shape, data)
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
