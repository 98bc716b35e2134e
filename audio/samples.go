package audio

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// convert converts the little-endian samples in src to floats in dst (same
// count) and returns the number of NaN and infinite values, which become 0.
type convert func(dst []float32, src []byte) (nonFinite int)

// swapped returns the converter of big-endian samples, which changes src.
func (c convert) swapped(width int) convert {
	return func(dst []float32, src []byte) int {
		for first := 0; first < len(src); first += width {
			for i, j := first, first+width-1; i < j; i, j = i+1, j-1 {
				src[i], src[j] = src[j], src[i]
			}
		}
		return c(dst, src)
	}
}

// asBytes returns the memory of samples.
func asBytes(samples []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(samples))), len(samples)*4)
}

func fromU8(dst []float32, src []byte) int {
	for i, b := range src[:len(dst)] {
		dst[i] = (float32(b) - 128) / 128
	}
	return 0
}

func fromS16(dst []float32, src []byte) int {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = float32(int16(uint16(src[2*i])|uint16(src[2*i+1])<<8)) * (1.0 / (1 << 15))
	}
	return 0
}

func fromS24(dst []float32, src []byte) int {
	src = src[:3*len(dst)]
	for i := range dst {
		v := int32(uint32(src[3*i])<<8 | uint32(src[3*i+1])<<16 | uint32(src[3*i+2])<<24)
		dst[i] = float32(v>>8) * (1.0 / (1 << 23))
	}
	return 0
}

func fromS32(dst []float32, src []byte) int {
	for i := range dst {
		dst[i] = float32(float64(int32(binary.LittleEndian.Uint32(src[4*i:]))) * (1.0 / (1 << 31)))
	}
	return 0
}

func fromF32(dst []float32, src []byte) (bad int) {
	src = src[:4*len(dst)]
	for len(dst) > 0 {
		done := clampFinite(dst, unsafe.Pointer(unsafe.SliceData(src)))
		dst, src = dst[done:], src[4*done:]
		n := min(len(dst), 256) // one by one, before eight at a time again
		for i := range dst[:n] {
			dst[i] = math.Float32frombits(clampBits(binary.LittleEndian.Uint32(src[4*i:]), &bad))
		}
		dst, src = dst[n:], src[4*n:]
	}
	return bad
}

// clampBits is clamp on bits; NaN and infinite values become 0 and are counted.
func clampBits(bits uint32, bad *int) uint32 {
	if bits&0x7f800000 == 0x7f800000 {
		*bad++
		return 0
	}
	return math.Float32bits(clamp(math.Float32frombits(bits)))
}

// integers reports whether most floats (little-endian, every 61st is looked at)
// have the range of integers.
func integers(samples []byte, width int) bool {
	least, infinite := uint16(0x42c8), uint16(0x7f80) // the upper bits of 100 and of infinity
	if width == 8 {
		least, infinite = 0x4059, 0x7ff0
	}
	n, large := 0, 0
	for at := width - 2; at < len(samples); at += 61 * width {
		n++
		if x := binary.LittleEndian.Uint16(samples[at:]) & 0x7fff; x >= least && x < infinite {
			large++
		}
	}
	return large > n/2
}

func fromF64(dst []float32, src []byte) (bad int) {
	for i := range dst {
		v := float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		dst[i] = math.Float32frombits(clampBits(math.Float32bits(v), &bad))
	}
	return bad
}

func fromTable(table *[256]float32) convert {
	return func(dst []float32, src []byte) int {
		for i, b := range src[:len(dst)] {
			dst[i] = table[b]
		}
		return 0
	}
}

// aLaw and muLaw are the decoding tables of ITU-T G.711.
var aLaw, muLaw = func() (a, mu [256]float32) {
	for i := range 256 {
		x := byte(i) ^ 0x55
		m := int(x&0x0f)<<4 + 8
		if seg := x >> 4 & 7; seg > 0 {
			m = (m + 0x100) << (seg - 1)
		}
		if x&0x80 == 0 {
			m = -m
		}
		a[i] = float32(m) / (1 << 15)

		x = ^byte(i)
		m = (int(x&0x0f)<<3+0x84)<<(x>>4&7) - 0x84
		if x&0x80 != 0 {
			m = -m
		}
		mu[i] = float32(m) / (1 << 15)
	}
	return a, mu
}()
