package ggmlfile

import (
	"encoding/binary"
	"io"
	"math"
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
	out.ints(Magic, h.Vocabulary, h.AudioContext, h.AudioState, h.AudioHeads, h.AudioLayers,
		h.TextContext, h.TextState, h.TextHeads, h.TextLayers, h.Mels, h.Type)
	out.ints(h.Mels, int32(len(filters))/max(h.Mels, 1))
	for _, f := range filters {
		out.bytes(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
	}
	out.ints(int32(len(tokens)))
	for _, t := range tokens {
		out.ints(int32(len(t)))
		out.bytes(t)
	}
	return out
}

// Tensor begins a tensor: its name, dimensions (the innermost first) and
// ggml's number of its type.
func (w *Writer) Tensor(name string, dims []int32, tensor int) {
	w.ints(int32(len(dims)), int32(len(name)), int32(tensor))
	w.ints(dims...)
	w.bytes([]byte(name))
}

// Values writes the next values of the current tensor; quantized types need
// whole rows.
func (w *Writer) Values(values []float32, tensor int) {
	w.row = AppendValues(w.row[:0], values, tensor)
	w.bytes(w.row)
}

// Err returns the first error of the underlying writer.
func (w *Writer) Err() error { return w.err }

func (w *Writer) ints(values ...int32) {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	w.bytes(b)
}

func (w *Writer) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}
