package ggmlfile

import (
	"encoding/binary"
	"io"
)

// Writer writes a Whisper file: the head by NewWriter, then tensor after
// tensor. It checks nothing; use Check on the file.
type Writer struct {
	w   io.Writer
	row []byte
	err error
}

// NewWriter writes the header, the mel filters (bands one after another, of
// bins values each) and the texts of the tokens.
func NewWriter(w io.Writer, h Header, filters []float32, tokens [][]byte) *Writer {
	out := &Writer{w: w}
	out.numbers(int32(Magic), h, h.Mels, int32(len(filters))/max(h.Mels, 1), filters, int32(len(tokens)))
	for _, t := range tokens {
		out.numbers(int32(len(t)), t)
	}
	return out
}

// Tensor begins a tensor: name, dimensions (innermost first), ggml's type.
func (w *Writer) Tensor(name string, dims []int32, tensor int) {
	w.numbers(int32(len(dims)), int32(len(name)), int32(tensor), dims, []byte(name))
}

// Values writes a tensor's next values; quantized types need whole rows.
func (w *Writer) Values(values []float32, tensor int) {
	w.row = AppendValues(w.row[:0], values, tensor)
	if w.err == nil {
		_, w.err = w.w.Write(w.row)
	}
}

// Err returns the first error of the underlying writer.
func (w *Writer) Err() error { return w.err }

// numbers writes numbers, structs and slices of them.
func (w *Writer) numbers(values ...any) {
	for _, v := range values {
		if w.err == nil {
			w.err = binary.Write(w.w, binary.LittleEndian, v)
		}
	}
}
