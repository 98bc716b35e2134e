//go:build !cgo || windows

package whisper

import (
	"fmt"
	"log/slog"

	"github.com/otograph/otograph/internal/system/native"
)

// Without cgo, and on Windows, libwhisper can't be opened: openLibrary returns
// an error, and nothing below it is ever called.

func openLibrary() error {
	return fmt.Errorf("whisper: a device needs libwhisper: %w", native.ErrNoWhisper)
}

// OpenLibrary returns the error that libwhisper is not available.
func OpenLibrary() (Library, error) { return Library{}, openLibrary() }

func systemInfo() string { return "" }

func setNativeLogger(*slog.Logger) {}
func prepareDevices() error        { return native.ErrNoCgo }
func loadPlugin(string) error      { return native.ErrNoCgo }
func listDevices() []Device        { return nil }

type weights struct{ lost bool }

func loadWeights(modelFile, place) (*weights, error) { return nil, native.ErrNoCgo }
func (*weights) free()                               {}
func (*weights) ends() (eot, begin int32)            { return 0, 0 }
func (*weights) Text(int32) string                   { return "" }
func (*weights) Tokenize(string) []int32             { return nil }
func (*weights) newState() (*state, error)           { return nil, native.ErrNoCgo }
func (*weights) newCall() (*call, error)             { return nil, native.ErrNoCgo }

type state struct{}

func (*state) free() {}
func (*state) decode(*call, *request, int, []float32) ([]token, error) {
	return nil, native.ErrNoCgo
}
func (*state) first(int) ([]float32, error)                      { return nil, native.ErrNoCgo }
func (*state) noSpeech(int) (float64, error)                     { return 0, native.ErrNoCgo }
func (*state) detect([]float32, int) (map[string]float64, error) { return nil, native.ErrNoCgo }

type call struct{}

func (*call) abort()                     {}
func (*call) free()                      {}
func (*call) work() (encodes, steps int) { return 0, 0 }
