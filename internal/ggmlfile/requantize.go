package ggmlfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// rest parses a valid file.
type rest struct{ left []byte }

func (r *rest) bytes(n int) (b []byte) {
	b, r.left = r.left[:n], r.left[n:]
	return b
}

func (r *rest) word() int { return int(int32(binary.LittleEndian.Uint32(r.bytes(4)))) }

// Requantize converts the matrices of a Whisper model (32-bit or 16-bit
// numbers, or q6_K) to another type and returns the model; other tensors do not
// change.
func Requantize(data []byte, to Type) ([]byte, error) {
	if _, err := Check(bytes.NewReader(data), int64(len(data)), nil); err != nil {
		return nil, err
	}
	tensor, file, ok := to.Numbers()
	if !ok {
		return nil, fmt.Errorf("ggmlfile: type %q: expected q8_0, q5_1, q5_0 or f16", to)
	}
	const header = 12 * 4 // magic and hyperparameters, the last of which is the type
	out := slices.Clone(data[:header])
	binary.LittleEndian.PutUint32(out[header-4:], uint32(file))
	r := &rest{data[header:]}
	r.bytes(4 * r.word() * r.word()) // mel filters
	for range r.word() {
		r.bytes(r.word())
	}
	out = append(out, data[header:len(data)-len(r.left)]...)
	for len(r.left) > 0 {
		begin := r.left
		dims, length, kind := r.word(), r.word(), r.word()
		sizes, count := make([]int32, dims), 1
		for i := range sizes {
			sizes[i] = int32(r.word())
			count *= int(sizes[i])
		}
		name := string(r.bytes(length))
		decode, ok := decoders[kind]
		if !ok {
			return nil, fmt.Errorf("tensor %s: expected 32-bit or 16-bit numbers or q6_K, found type %d", name, kind)
		}
		packed := r.bytes(count / decode.block * decode.size)
		if !Quantizes(name, sizes) {
			out = append(out, begin[:len(begin)-len(r.left)]...)
			continue
		}
		head := slices.Clone(begin[:12+4*dims+length])
		binary.LittleEndian.PutUint32(head[8:], uint32(tensor))
		out = append(out, head...)
		var values []float32
		for block := range slices.Chunk(packed, decode.size) {
			values = decode.values(values, block)
		}
		out = appendRows(out, values, int(sizes[0]), tensor)
	}
	return out, nil
}

func appendRows(out []byte, values []float32, width, tensor int) []byte {
	for row := range slices.Chunk(values, width) {
		out = AppendValues(out, row, tensor)
	}
	return out
}

// decoder decodes a tensor type: the numbers and bytes per block.
type decoder struct {
	block, size int
	values      func(list []float32, block []byte) []float32 // appends a block's numbers
}

// decoders by ggml's number of the type.
var decoders = map[int]decoder{
	0: {1, 4, func(list []float32, b []byte) []float32 {
		return append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}},
	1: {1, 2, func(list []float32, b []byte) []float32 {
		return append(list, number(binary.LittleEndian.Uint16(b)))
	}},
	14: {256, 210, fromQ6K},
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
