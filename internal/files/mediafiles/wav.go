package mediafiles

import (
	"encoding/binary"
	"math"
)

// WAVHeader returns the header of a WAV file, mono with 16 bits, at a rate in
// Hz and with size bytes of samples. For a file above 4 GB, or of unknown
// length (math.MaxUint32, as in FFmpeg's streams), the header's sizes are the
// largest that it can hold.
func WAVHeader(rate, size uint32) []byte {
	const width = 2
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, 36+min(size, math.MaxUint32-36))...)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...) // PCM, one channel
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*width)
	b = append(b, width, 0, 8*width, 0)
	return binary.LittleEndian.AppendUint32(append(b, "data"...), size)
}

// WAV returns samples (-1 to 1) at a rate in Hz as a WAV file, mono with 16 bits.
func WAV(rate uint32, samples []float32) []byte {
	return append(WAVHeader(rate, uint32(2*len(samples))), Samples16(samples)...)
}

// Samples16 returns samples (-1 to 1) as 16 bits each, little-endian.
func Samples16(samples []float32) []byte {
	b := make([]byte, 0, 2*len(samples))
	for _, x := range samples {
		v := math.Round(float64(x) * (1 << 15))
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(min(max(v, math.MinInt16), math.MaxInt16))))
	}
	return b
}
