//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"runtime"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Into computes only the given outputs, of rank 1 or more, into the memory of
// their tensors, whose shapes must be the results'. Nothing is copied between Go
// and the library. It may be called concurrently; it cannot be interrupted.
func (s *Session) Into(inputs, outputs map[string]*Tensor) (err error) {
	if err := s.checkInputs(inputs); err != nil {
		return err
	}
	for name, t := range outputs {
		o, ok := onnxfile.Find(s.outs, name)
		if !ok {
			return fmt.Errorf("%s: %w: no output %q, it has %s", s.source, ErrContract, name, onnxfile.FormatValues(s.outs))
		}
		if err := fits(o, t); err != nil {
			return fmt.Errorf("%s: %w: output %w", s.source, ErrContract, err)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return fmt.Errorf("%s: %w", s.source, ErrClosed)
	}
	var pin runtime.Pinner
	var used []interface{ Destroy() error }
	defer func() {
		for _, u := range used {
			err = errors.Join(err, u.Destroy())
		}
		pin.Unpin()
	}()
	fail := func(err error) error { return fmt.Errorf("%s: %w: %s", s.source, ErrRun, cleanMessage(err)) }
	bind, err := s.session.CreateIoBinding()
	if err != nil {
		return fail(err)
	}
	used = append(used, bind)
	put := func(list map[string]*Tensor, to func(string, onnx.Value) error) error {
		for name, t := range list {
			v, err := t.value(&pin)
			if err != nil {
				return err
			}
			used = append(used, v)
			if err := to(name, v); err != nil {
				return err
			}
		}
		return nil
	}
	if err := put(inputs, bind.BindInput); err != nil {
		return fail(err)
	}
	if err := put(outputs, bind.BindOutput); err != nil {
		return fail(err)
	}
	if err := s.session.RunWithBinding(bind); err != nil {
		return fail(err)
	}
	return nil
}

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
