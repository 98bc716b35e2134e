//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Binding runs a session repeatedly over the same memory: the caller writes
// into the input tensors' slices, calls Run and reads the output tensors'
// slices. A run does not allocate Go memory. A binding belongs to one goroutine
// at a time; several bindings of one session may run concurrently. Closing a
// session first closes its bindings.
type Binding struct {
	session *Session
	bind    *onnx.IoBinding
	values  []onnx.Value
	pin     runtime.Pinner

	running sync.Mutex // one run at a time, because runs share the memory
}

// Bind fixes the tensors of all inputs and of some outputs. Their shapes must
// fit the model, with rank 1 or more for outputs; a scalar input keeps its
// present value. The same tensor may not be input and output. The binding keeps
// the tensors' memory in place until Close.
func (s *Session) Bind(inputs, outputs map[string]*Tensor) (*Binding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bound(inputs, outputs)
	if err != nil {
		return nil, err
	}
	if s.bindings == nil {
		s.bindings = map[*Binding]struct{}{}
	}
	s.bindings[b] = struct{}{}
	return b, nil
}

// Into computes only the given outputs, into the memory of their tensors, whose
// shapes must be the results'. Nothing is copied between Go and the library. It
// may be called concurrently; it cannot be interrupted.
func (s *Session) Into(inputs, outputs map[string]*Tensor) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, err := s.bound(inputs, outputs)
	if err != nil {
		return err
	}
	if err = s.session.RunWithBinding(b.bind); err != nil {
		err = fmt.Errorf("%s: %w: %s", s.source, ErrRun, cleanMessage(err))
	}
	return errors.Join(err, b.release())
}

// bound returns a binding unknown to Close; the caller holds the lock.
func (s *Session) bound(inputs, outputs map[string]*Tensor) (*Binding, error) {
	if err := s.checkInputs(inputs); err != nil {
		return nil, err
	}
	for name, t := range outputs {
		o, ok := onnxfile.Find(s.outs, name)
		if !ok {
			return nil, fmt.Errorf("%s: %w: no output %q, it has %s", s.source, ErrContract, name, onnxfile.FormatValues(s.outs))
		}
		if err := fits(o, t); err != nil {
			return nil, fmt.Errorf("%s: %w: output %w", s.source, ErrContract, err)
		}
		if len(t.shape) == 0 {
			return nil, fmt.Errorf("%s: %w: output %s is a scalar and cannot be bound", s.source, ErrContract, name)
		}
	}
	if s.session == nil {
		return nil, fmt.Errorf("%s: %w", s.source, ErrClosed)
	}
	bind, err := s.session.CreateIoBinding()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s.source, ErrRun, cleanMessage(err))
	}
	b := &Binding{session: s, bind: bind}
	put := func(list map[string]*Tensor, to func(string, onnx.Value) error) {
		for name, t := range list {
			if err != nil {
				return
			}
			var v onnx.Value
			if v, err = t.value(&b.pin); err != nil {
				return
			}
			b.values = append(b.values, v)
			err = to(name, v)
		}
	}
	put(inputs, bind.BindInput)
	put(outputs, bind.BindOutput)
	if err != nil {
		_ = b.release()
		return nil, fmt.Errorf("%s: %w: %s", s.source, ErrRun, cleanMessage(err))
	}
	return b, nil
}

// Run computes the outputs. It cannot be interrupted: bind small pieces.
func (b *Binding) Run() error {
	s := b.session
	s.mu.RLock()
	defer s.mu.RUnlock()
	b.running.Lock()
	defer b.running.Unlock()
	if b.bind == nil {
		return fmt.Errorf("%s: %w", s.source, ErrClosed)
	}
	if err := s.session.RunWithBinding(b.bind); err != nil {
		return fmt.Errorf("%s: %w: %s", s.source, ErrRun, cleanMessage(err))
	}
	return nil
}

// Close releases the binding after its last run; it may be called more than once.
func (b *Binding) Close() error {
	b.session.mu.Lock() // waits for runs
	defer b.session.mu.Unlock()
	delete(b.session.bindings, b)
	return b.release()
}

// release is Close with the session's lock held.
func (b *Binding) release() error {
	if b.bind == nil {
		return nil
	}
	errs := []error{b.bind.Destroy()}
	b.bind = nil
	for _, v := range b.values {
		errs = append(errs, v.Destroy())
	}
	b.values = nil
	b.pin.Unpin()
	return errors.Join(errs...)
}
