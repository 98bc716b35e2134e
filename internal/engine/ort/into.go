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
