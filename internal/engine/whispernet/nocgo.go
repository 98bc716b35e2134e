//go:build !cgo

package whispernet

import (
	"errors"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// errNoCgo is returned by a program that was built without cgo.
var errNoCgo = errors.New("whispernet: this program was built without cgo (CGO_ENABLED=0), which the standard tier needs")

// Model is a loaded network.
type Model struct{}

// Open returns an error: without cgo there are no kernels.
func Open(*ggmlfile.Checked, Options) (*Model, error) { return nil, errNoCgo }

// Kernels returns an error.
func Kernels(string) (string, error) { return "", errNoCgo }

// The other methods are never called: Open returns no Model.

// Close does nothing.
func (*Model) Close() {}

// Header returns no dimensions.
func (*Model) Header() ggmlfile.Header { return ggmlfile.Header{} }

// Vocabulary returns nil.
func (*Model) Vocabulary() *Vocabulary { return nil }

// WindowBytes returns 0.
func (*Model) WindowBytes() int { return 0 }

// Encode returns an error.
func (*Model) Encode([]float32, int, int, *Stop) (*Window, error) { return nil, errNoCgo }

// EncodeWhole returns an error.
func (*Model) EncodeWhole([]float32, int, int, *Stop) (*Window, error) { return nil, errNoCgo }

// EncodeBriefly returns an error.
func (*Model) EncodeBriefly([]float32, int, *Stop) (*Window, error) { return nil, errNoCgo }

// Normalize does nothing.
func Normalize([]float32, int32) (marks, largest float32) { return 0, 0 }

// NewDecoder returns an empty Decoder.
func (*Model) NewDecoder(int) *Decoder { return &Decoder{} }

// Window is an encoded window of sound.
type Window struct{}

// Free does nothing.
func (*Window) Free() {}

// Forget does nothing.
func (*Window) Forget() {}

// Decoder holds the buffers of decoder passes.
type Decoder struct{}

// Free does nothing.
func (*Decoder) Free() {}

// Step returns an error.
func (*Decoder) Step([]Column, *Stop) error { return errNoCgo }

// Attention returns an error.
func (*Decoder) Attention(*Window, []int32, [][2]int, int, *Stop) ([][][]float32, error) {
	return nil, errNoCgo
}
