//go:build !cgo

package ort

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/internal/system/native"
)

// Session is an open model. Without cgo, Open checks a model and fails.
type Session struct{}

// Open checks a model. For a valid model, the error is native.ErrNoCgo.
func Open(src Source, _ Options) (*Session, error) {
	if _, err := Inspect(src); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", src, native.ErrNoCgo)
}

// Version returns native.ErrNoCgo.
func Version() (string, error) { return "", native.ErrNoCgo }

// TrimHeap does nothing: no native library has a heap.
func TrimHeap() {}

// Source is never called: there is no session.
func (*Session) Source() Source { return Source{} }

// Graph is never called: there is no session.
func (*Session) Graph() *Graph { return nil }

// Run is never called: there is no session.
func (*Session) Run(context.Context, map[string]*Tensor, ...string) ([]*Tensor, error) {
	return nil, native.ErrNoCgo
}

// Into is never called: there is no session.
func (*Session) Into(_, _ map[string]*Tensor) error { return native.ErrNoCgo }

// Close does nothing.
func (*Session) Close() error { return nil }
