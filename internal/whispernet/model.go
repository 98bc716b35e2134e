package whispernet

import (
	"errors"
	"io"

	"github.com/otograph/otograph/internal/ggmlfile"
)

// Options chooses how a model is computed.
type Options struct {
	// Kernels names the instructions to use: "avx512", "avx2", "neon" or "generic"; "" for
	// the best that the processor has.
	Kernels string
}

// Model is a loaded network. It does not change after Open and serves any number of
// goroutines.
type Model struct {
	header     ggmlfile.Header
	vocabulary *Vocabulary
}

// Open reads a model of size bytes, which ggmlfile.Check has accepted.
func Open(file io.ReaderAt, size int64, opt Options) (*Model, error) {
	return nil, errors.New("not there yet")
}

// Close frees the weights. No window of the model may be in use.
func (m *Model) Close() {}

// Header returns the dimensions of the network.
func (m *Model) Header() ggmlfile.Header { return m.header }

// Vocabulary returns the tokens of the model.
func (m *Model) Vocabulary() *Vocabulary { return m.vocabulary }

// Kernels names the instructions that compute the model.
func (m *Model) Kernels() string { return "" }
