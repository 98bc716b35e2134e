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
	"fmt"
	"strings"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/native"
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

// minimumLibrary is the oldest ONNX Runtime that serves the C interface which
// onnxruntime_go 1.27 asks for (API 24).
const minimumLibrary = "1.24"

var environment struct {
	sync.Mutex
	ready bool
}

// start opens the library and makes the environment, once. A failure is not kept:
// after the library was installed the next call succeeds.
func start() error {
	environment.Lock()
	defer environment.Unlock()
	if environment.ready {
		return nil
	}
	if !onnx.IsInitialized() { // the program around us may use the same module
		path, err := native.ONNXRuntime()
		if err != nil {
			return err
		}
		flattenHeap()
		onnx.SetSharedLibraryPath(path)
		if err := onnx.InitializeEnvironment(onnx.WithLogLevelFatal()); err != nil {
			hint := ""
			if strings.Contains(err.Error(), "base") { // GetApi answered NULL
				hint = "; version " + minimumLibrary + " or newer is needed"
			}
			return fmt.Errorf("%w: %s does not serve: %w%s", native.ErrMissing, path, err, hint)
		}
	}
	environment.ready = true
	return nil
}

// Version opens ONNX Runtime, if that has not happened yet, and returns its version.
func Version() (string, error) {
	if err := start(); err != nil {
		return "", err
	}
	return onnx.GetVersion(), nil
}
