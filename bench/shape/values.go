package shape

import (
	"encoding/binary"
	"math"
	"slices"
)

// Tensor types of ggml.
const (
	tensorF32  = 0
	tensorF16  = 1
	tensorQ5_0 = 6
	tensorQ5_1 = 7
	tensorQ8_0 = 8
)

// Block is how many values of a row share a scale in the quantized types.
const Block = 32

// Numbers returns ggml's numbers for tensors of the type and for a file whose large
// tensors have it; ok is false for an unknown type.
func (t Type) Numbers() (tensor, file int, ok bool) {
	switch t {
	case F16:
		return tensorF16, 1, true
	case Q8_0:
		return tensorQ8_0, 2007, true
	case Q5_1:
		return tensorQ5_1, 2009, true
	case Q5_0:
		return tensorQ5_0, 2008, true
	}
	return 0, 0, false
}

// AppendValues appends a row of values in a tensor type of ggml, rounded as ggml's own
// quantization does without weighing the values. The rows of quantized types are whole
// blocks.
func AppendValues(b []byte, row []float32, tensor int) []byte {
	quantize := map[int]func([]byte, []float32) []byte{tensorQ8_0: appendQ8_0, tensorQ5_1: appendQ5_1, tensorQ5_0: appendQ5_0}[tensor]
	switch {
	case quantize != nil:
		for block := range slices.Chunk(row, Block) {
			b = quantize(b, block)
		}
	case tensor == tensorF16:
		for _, v := range row {
			b = binary.LittleEndian.AppendUint16(b, half(v))
		}
	default:
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
	b = binary.LittleEndian.AppendUint16(b, half(d))
	for _, v := range block {
		q := 0.0
		if d > 0 {
			q = math.Round(float64(v / d))
		}
		b = append(b, byte(int8(max(-127, min(127, q)))))
	}
	return b
}

func appendQ5_1(b []byte, block []float32) []byte {
	least, most := slices.Min(block), slices.Max(block)
	d := (most - least) / 31
	b = binary.LittleEndian.AppendUint16(b, half(d))
	b = binary.LittleEndian.AppendUint16(b, half(least))
	return appendFives(b, block, d, -least)
}

// appendQ5_0 makes the value farthest from zero the least of the five-bit values, of
// which there is one more on that side.
func appendQ5_0(b []byte, block []float32) []byte {
	var peak float32
	for _, v := range block {
		if max(v, -v) > max(peak, -peak) {
			peak = v
		}
	}
	d := peak / -16
	b = binary.LittleEndian.AppendUint16(b, half(d))
	return appendFives(b, block, d, 16*d)
}

// appendFives appends (value + offset) / d of a block, rounded, in five bits: the
// fifth bits of all first, then the lower halves, those of values i and i + 16
// in one byte.
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

// half rounds to the nearest 16-bit float.
func half(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, exponent, mantissa := uint16(bits>>16&0x8000), int(bits>>23&0xff)-112, bits&0x7fffff
	switch {
	case exponent >= 31:
		return sign | 0x7bff // the largest value
	case exponent < -10:
		return sign
	case exponent <= 0: // below the normal range
		shift := uint(14 - exponent)
		return sign | uint16((mantissa|0x800000+1<<(shift-1))>>shift)
	}
	return sign | uint16((uint32(exponent)<<23+mantissa+0x1000)>>13)
}
