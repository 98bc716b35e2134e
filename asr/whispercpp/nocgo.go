//go:build !cgo || windows

package whispercpp

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/system/native"
)

// Without cgo, and on Windows, libwhisper can't be opened: openLibrary returns
// an error, and nothing below it is ever called.

func openLibrary() error {
	return fmt.Errorf("whispercpp: a device needs libwhisper: %w", native.ErrNoWhisper)
}

// OpenLibrary returns the error that libwhisper is not available.
func OpenLibrary() (version string, err error) { return "", openLibrary() }

func setNativeLogger(*slog.Logger) {}
func prepareDevices() error        { return native.ErrNoCgo }
func loadPlugin(string) error      { return native.ErrNoCgo }
func listDevices() []Device        { return nil }

type weights struct{ lost bool }

func loadWeights(*whispernet.File, int) (*weights, error) { return nil, native.ErrNoCgo }
func (*weights) free()                                    {}
func (*weights) ends() (eot, begin int32)                 { return 0, 0 }
func (*weights) text(int32) string                        { return "" }
func (*weights) newState() (*state, error)                { return nil, native.ErrNoCgo }

type state struct{}

func (*state) free() {}
func (*state) decode(context.Context, request, []float32) ([]token, asr.Stats, error) {
	return nil, asr.Stats{}, native.ErrNoCgo
}
func (*state) first() ([]float32, error)                    { return nil, native.ErrNoCgo }
func (*state) noSpeech() (float64, error)                   { return 0, native.ErrNoCgo }
func (*state) detect([]float32) (map[string]float64, error) { return nil, native.ErrNoCgo }
