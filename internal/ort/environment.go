//go:build cgo

package ort

import (
	"fmt"
	"strings"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/native"
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
