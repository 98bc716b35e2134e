// Package ort runs ONNX models through ONNX Runtime, the one place of the project
// that does.
//
// ONNX Runtime is opened at run time (package internal/native finds it) when the
// first model is opened; without it the error wraps native.ErrMissing. There is one
// environment in the process, never taken down. Every session computes on the
// thread that calls it unless Options.Threads asks for more, keeps no spinning
// threads and no memory arena, and writes nothing to the terminal.
//
// A model's bytes are walked in Go before ONNX Runtime sees them ([Inspect]), so
// that a file that is no model, is cut off, or reaches for files outside its folder
// is answered with an error that says so.
package ort

import (
	"errors"

	"github.com/otograph/otograph/internal/onnxfile"
)

// Sentinels; every error of this package wraps one of them, native.ErrMissing, or
// the context's error, or comes from the file system.
var (
	// ErrInvalid: the bytes are not an ONNX model that can be run here.
	ErrInvalid = onnxfile.ErrInvalid
	// ErrContract: a sound model with other inputs or outputs than its role needs.
	ErrContract = errors.New("model has other inputs or outputs")
	// ErrInput: a tensor handed to Run does not fit the model.
	ErrInput = errors.New("input does not fit the model")
	// ErrRun: ONNX Runtime failed while computing.
	ErrRun = errors.New("ONNX Runtime failed")
	// ErrClosed: the session was closed.
	ErrClosed = errors.New("model is closed")
)
