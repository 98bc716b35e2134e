//go:build !cgo || windows

package whisper

import (
	"fmt"
	"log/slog"

	"github.com/otograph/otograph/internal/native"
)

// Without cgo, and on Windows, libwhisper can't be opened: openLibrary says so, and
// nothing below it is ever called.

func openLibrary() error {
	return fmt.Errorf("whisper: the standard tier needs libwhisper: %w", native.ErrNoWhisper)
}

// OpenLibrary returns the error that says what is missing.
func OpenLibrary() (Library, error) { return Library{}, openLibrary() }

func systemInfo() string                { return "" }
func typeName(int32) string             { return "" }
func loadBLAS(string) error             { return native.ErrNoCgo }
func blasKernel() string                { return "" }
func measureProduct(int32) (Race, bool) { return Race{}, false }
func openKernels() (string, error)      { return "", native.ErrNoCgo }

func computed() (products, attentions uint64) { return 0, 0 }
func setNativeLogger(*slog.Logger)            {}
func prepareDevices() error                   { return native.ErrNoCgo }
func loadPlugin(string) error                 { return native.ErrNoCgo }
func listDevices() []Device                   { return nil }

type weights struct{ blas, lost bool }

func loadWeights(modelFile, int, place) (*weights, error) { return nil, native.ErrNoCgo }
func (*weights) free()                                    {}
func (*weights) eot() int32                               { return 0 }
func (*weights) beg() int32                               { return 0 }
func (*weights) text(int32) string                        { return "" }
func (*weights) tokenize(string) []int32                  { return nil }
func (*weights) spell(string) []int32                     { return nil }
func (*weights) newState() (*state, error)                { return nil, native.ErrNoCgo }
func (*weights) newJob(*hotwords) (*job, error)           { return nil, native.ErrNoCgo }

type state struct {
	w         *weights
	shortened bool
}

func (*state) free() {}
func (*state) decode(*job, request, []float32) ([]token, error) {
	return nil, native.ErrNoCgo
}
func (*state) noSpeech(int) (float64, error) { return 0, native.ErrNoCgo }
func (*state) detect([]float32, int, int) (map[string]float64, error) {
	return nil, native.ErrNoCgo
}

type job struct{}

func (*job) abort()                             {}
func (*job) free()                              {}
func (*job) work() (encodes, steps, starts int) { return 0, 0, 0 }
