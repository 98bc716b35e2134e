package ggmlfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Requantize converts the matrices of a Whisper model (32-bit or 16-bit
// numbers, or q6_K) to another type and returns the model; other tensors do not
// change.
func Requantize(data []byte, to Type) ([]byte, error) {
	w, err := Check(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		return nil, err
	}
	tensor, file, ok := to.Numbers()
	if !ok {
		return nil, fmt.Errorf("ggmlfile: type %q: expected q8_0, q5_1, q5_0 or f16", to)
	}
	out := slices.Clone(data[:w.Index[0].begin()])
	binary.LittleEndian.PutUint32(out[11*4:], uint32(file)) // the last hyperparameter
	for _, t := range w.Index {
		decode, ok := decoders[t.Kind]
		if !ok {
			return nil, fmt.Errorf("tensor %s: expected 32-bit or 16-bit numbers or q6_K, found type %d", t.Name, t.Kind)
		}
		if !Quantizes(t.Name, t.Dims) {
			out = append(out, data[t.begin():t.Offset+t.Size]...)
			continue
		}
		kind := len(out) + 8
		out = append(out, data[t.begin():t.Offset]...)
		binary.LittleEndian.PutUint32(out[kind:], uint32(tensor))
		var values []float32
		for block := range slices.Chunk(data[t.Offset:][:t.Size], int(blocks[t.Kind].size)) {
			values = decode(values, block)
		}
		for row := range slices.Chunk(values, int(t.Dims[0])) {
			out = AppendValues(out, row, tensor)
		}
	}
	return out, nil
}

// begin returns the offset of the tensor's head.
func (t Tensor) begin() int64 { return t.Offset - int64(4*3+4*len(t.Dims)+len(t.Name)) }

// decoders append the numbers of a block, by ggml's number of the type.
var decoders = map[int32]func(list []float32, block []byte) []float32{
	0: func(list []float32, b []byte) []float32 {
		return append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	},
	1: func(list []float32, b []byte) []float32 {
		return append(list, number(binary.LittleEndian.Uint16(b)))
	},
	14: fromQ6K,
}

// number returns the value of a finite 16-bit float.
func number(h uint16) float32 {
	f := math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112
	if h&0x8000 != 0 {
		return -f
	}
	return f
}

// fromQ6K appends the 256 numbers of a q6_K block: the lower four bits, the
// upper two, a scale for each 16 numbers, and the block's scale. Each half of
// the block holds four rows of 32 whose bits are interleaved.
func fromQ6K(list []float32, b []byte) []float32 {
	low, high, scales := b[:128], b[128:192], b[192:208]
	d := number(binary.LittleEndian.Uint16(b[208:]))
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
