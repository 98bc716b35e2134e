package mediafiles

import (
	"encoding/binary"
	"math"
	"os"
)

// WAVHeader returns the header of a WAV file, mono with 16 bits, at a rate in Hz
// and with size bytes of samples. Of a file above 4 GB, the sizes are the
// largest that it can state.
func WAVHeader(rate int, size int64) []byte {
	const width = 2
	size = min(size, math.MaxUint32)
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(36+min(size, math.MaxUint32-36)))...)
	b = append(b, "WAVEfmt "...)
	for _, v := range []uint32{16, 1 | 1<<16, uint32(rate), uint32(rate) * width, width | 8*width<<16} { // 1, 1: PCM, one channel
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint32(append(b, "data"...), uint32(size))
}

// AppendPCM16 appends samples in [-1, 1] to b as little-endian 16-bit integers.
func AppendPCM16(b []byte, samples []float32) []byte {
	for _, x := range samples {
		v := math.Round(float64(min(max(x, -1), 1)) * math.MaxInt16)
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(v)))
	}
	return b
}

// WriteWAV writes samples in [-1, 1] to a WAV file, mono with 16 bits.
func WriteWAV(path string, samples []float32, rate int) error {
	return os.WriteFile(path, AppendPCM16(WAVHeader(rate, 2*int64(len(samples))), samples), 0o666)
}
