package ggmlfile

import (
	"encoding/binary"
	"math"
	"slices"
)

// Type is the storage type of a model's matrices.
type Type string

// The types that can be written.
const (
	F16  Type = "f16"
	Q8_0 Type = "q8_0" // blocks of 32 eight-bit values with one scale
	Q5_1 Type = "q5_1" // blocks of 32 five-bit values with a scale and a minimum
	Q5_0 Type = "q5_0" // blocks of 32 five-bit values with one scale
)

// ggml's numbers of the tensor types that AppendValues writes.
const (
	TensorF32  = 0
	TensorF16  = 1
	tensorQ5_0 = 6
	tensorQ5_1 = 7
	tensorQ8_0 = 8
)

// Block is the number of a row's values that share a quantized type's scale.
const Block = 32

// HalfMax is the largest 16-bit float.
const HalfMax = 65504

// Numbers returns ggml's numbers for tensors of the type and for a file with
// such matrices; ok is false for an unknown type.
func (t Type) Numbers() (tensor, file int, ok bool) {
	numbers, ok := map[Type][2]int{F16: {TensorF16, 1}, Q8_0: {tensorQ8_0, 2007}, Q5_1: {tensorQ5_1, 2009}, Q5_0: {tensorQ5_0, 2008}}[t]
	return numbers[0], numbers[1], ok
}

// Quantizes reports whether a file of a quantized type holds a tensor in that
// type, by its name and its dimensions (the innermost first). Convolutions,
// biases and the tables of positions keep their own types.
func Quantizes(name string, dims []int32) bool {
	unquantized := []string{"encoder.conv1.bias", "encoder.conv2.bias", "encoder.positional_embedding", "decoder.positional_embedding"}
	return len(dims) == 2 && dims[0]%Block == 0 && !slices.Contains(unquantized, name)
}

// AppendValues appends a row of values in a tensor type of ggml, rounded as
// ggml does without weights. Rows of quantized types are whole blocks.
func AppendValues(b []byte, row []float32, tensor int) []byte {
	quantize := map[int]func([]byte, []float32) []byte{tensorQ8_0: appendQ8_0, tensorQ5_1: appendQ5_1, tensorQ5_0: appendQ5_0}[tensor]
	switch {
	case quantize != nil:
		for block := range slices.Chunk(row, Block) {
			b = quantize(b, block)
		}
	case tensor == TensorF16:
		for _, v := range row {
			b = binary.LittleEndian.AppendUint16(b, Half(v))
		}
	default:
		b = slices.Grow(b, 4*len(row))
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

func appendQ8_0(b []byte, block []float32) []byte {
	var peak float32
	for _, v := range block {
		peak = max(peak, v, -v)
	}
	d := peak / 127
	b = binary.LittleEndian.AppendUint16(b, Half(d))
	for _, v := range block {
		q := 0.0
		if d > 0 {
			q = math.RoundToEven(float64(v / d))
		}
		b = append(b, byte(int8(max(-127, min(127, q)))))
	}
	return b
}

func appendQ5_1(b []byte, block []float32) []byte {
	least, most := slices.Min(block), slices.Max(block)
	d := (most - least) / 31
	b = binary.LittleEndian.AppendUint16(b, Half(d))
	b = binary.LittleEndian.AppendUint16(b, Half(least))
	return appendFives(b, block, d, -least)
}

// appendQ5_0 maps the value farthest from zero to the lowest five-bit value,
// because the negative side has one value more.
func appendQ5_0(b []byte, block []float32) []byte {
	var peak float32
	for _, v := range block {
		if max(v, -v) > max(peak, -peak) {
			peak = v
		}
	}
	d := peak / -16
	b = binary.LittleEndian.AppendUint16(b, Half(d))
	return appendFives(b, block, d, 16*d)
}

// appendFives appends (value + offset) / d of a block, rounded, in five bits:
// all fifth bits, then the lower four, with values i and i + 16 in a byte.
func appendFives(b []byte, block []float32, d, offset float32) []byte {
	var high uint32
	var low [Block / 2]byte
	for i, v := range block {
		q := uint32(0)
		if d != 0 {
			q = uint32(max(0, min(31, (v+offset)/d+0.5)))
		}
		high |= q >> 4 << i
		low[i%len(low)] |= byte(q&15) << (i / len(low) * 4)
	}
	b = binary.LittleEndian.AppendUint32(b, high)
	return append(b, low[:]...)
}

// Half rounds to the nearest 16-bit float, with ties to even. A larger number
// becomes the largest 16-bit float.
func Half(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, size := uint16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case size > 0x7f800000:
		return sign | 0x7e00 // not a number
	case size >= 0x477ff000: // 65520 and more
		return sign | 0x7bff
	case size <= 0x33000000: // at most half of the smallest
		return sign
	case size < 0x38800000: // below the normal range: multiples of 2^-24
		shift := 126 - size>>23
		mantissa := size&0x7fffff | 0x800000
		return sign | uint16((mantissa+1<<(shift-1)-1+mantissa>>shift&1)>>shift)
	}
	size -= 112 << 23
	return sign | uint16((size+0xfff+size>>13&1)>>13)
}
