package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// requantize converts the matrices of a Whisper model (32-bit or 16-bit
// numbers, or q6_K) to another type and returns the model; other tensors do not
// change.
func requantize(data []byte, to ggmlfile.Type) ([]byte, error) {
	w, err := ggmlfile.Check(bytes.NewReader(data), int64(len(data)), false)
	if err != nil {
		return nil, err
	}
	tensor, file, _ := to.Numbers()
	out := slices.Clone(data[:begin(w.Index[0])])
	binary.LittleEndian.PutUint32(out[11*4:], uint32(file)) // the last hyperparameter
	for _, t := range w.Index {
		decode, ok := decoders[t.Kind]
		if !ok {
			return nil, fmt.Errorf("tensor %s: expected 32-bit or 16-bit numbers or q6_K, found type %d", t.Name, t.Kind)
		}
		if !ggmlfile.Quantizes(t.Name, t.Dims) {
			out = append(out, data[begin(t):t.Offset+t.Size]...)
			continue
		}
		kind := len(out) + 8
		out = append(out, data[begin(t):t.Offset]...)
		binary.LittleEndian.PutUint32(out[kind:], uint32(tensor))
		var values []float32
		for block := range slices.Chunk(data[t.Offset:][:t.Size], decode.size) {
			values = decode.values(values, block)
		}
		for row := range slices.Chunk(values, int(t.Dims[0])) {
			out = ggmlfile.AppendValues(out, row, tensor)
		}
	}
	return out, nil
}

// begin returns the offset of the tensor's head.
func begin(t ggmlfile.Tensor) int64 { return t.Offset - int64(4*3+4*len(t.Dims)+len(t.Name)) }

// decoder decodes a tensor type: the bytes of a block, and a function that
// appends its numbers.
type decoder struct {
	size   int
	values func(list []float32, block []byte) []float32
}

// decoders by ggml's number of the type.
var decoders = map[int32]decoder{
	0: {4, func(list []float32, b []byte) []float32 {
		return append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}},
	1: {2, func(list []float32, b []byte) []float32 {
		return append(list, onnxfile.Half(binary.LittleEndian.Uint16(b)))
	}},
	14: {210, fromQ6K},
}

// fromQ6K appends the 256 numbers of a q6_K block: the lower four bits, the
// upper two, a scale for each 16 numbers, and the block's scale. Each half of
// the block holds four rows of 32 whose bits are interleaved.
func fromQ6K(list []float32, b []byte) []float32 {
	low, high, scales := b[:128], b[128:192], b[192:208]
	d := onnxfile.Half(binary.LittleEndian.Uint16(b[208:]))
	for half := range 2 {
		for row := range 4 {
			for i := range 32 {
				four := low[64*half+32*(row%2)+i] >> (row / 2 * 4) & 15
				two := high[32*half+i] >> (2 * row) & 3
				scale := int8(scales[8*half+2*row+i/16])
				list = append(list, d*float32(scale)*float32(int(four|two<<4)-32))
			}
		}
	}
	return list
}
