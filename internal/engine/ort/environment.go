//go:build cgo

package ort

import (
	"fmt"
	"strings"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/system/native"
)

// minimumLibrary is the oldest ONNX Runtime with the C interface that
// onnxruntime_go 1.27 requires (API 24).
const minimumLibrary = "1.24"

var environment struct {
	sync.Mutex
	ready bool
}

// start opens the library and creates the environment, once. A failure is not
// cached: the next call succeeds if the library has been installed meanwhile.
func start() error {
	environment.Lock()
	defer environment.Unlock()
	if environment.ready {
		return nil
	}
	if !onnx.IsInitialized() { // other code of the program may have initialized the module
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

// Version returns ONNX Runtime's version. It opens the library if needed.
func Version() (string, error) {
	if err := start(); err != nil {
		return "", err
	}
	return onnx.GetVersion(), nil
}
