// Package ort runs models with ONNX Runtime. No other package calls it.
//
// ONNX Runtime is opened at run time (package internal/system/native finds it)
// with the first model; if it is missing, the error wraps native.ErrMissing.
// The process has one environment, which is never closed. Every session
// computes on the calling thread unless Options.Threads requests more threads,
// uses neither spinning threads nor a memory arena, and writes nothing to the
// terminal.
//
// Go code checks a model's bytes before ONNX Runtime reads them ([Inspect]), so
// that a file that is not a model, is truncated, or refers to files outside its
// folder is refused with a clear error.
package ort

import (
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
)

// Sentinel errors. Every error of this package wraps one of them,
// native.ErrMissing, or the context's error, or comes from the file system.
var (
	// ErrInvalid is returned for bytes that are not a model to run here.
	ErrInvalid = onnxfile.ErrInvalid
	// ErrContract is returned for a model whose ports do not fit its role.
	ErrContract = fmt.Errorf("%w: other inputs or outputs", models.ErrBroken)
	// ErrInput is returned if a tensor passed to Run does not fit the model.
	ErrInput = errors.New("input does not fit the model")
	// ErrRun is returned if ONNX Runtime fails while computing.
	ErrRun = errors.New("ONNX Runtime failed")
	// ErrClosed is returned after the session was closed.
	ErrClosed = errors.New("model is closed")
)
