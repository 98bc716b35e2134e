package audio

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
)

// flacTail is the number of bytes searched at the end of a FLAC file: more than
// one frame of eight channels with 24 bits and 65535 samples per channel.
const flacTail = 2 << 20

// flacSeconds returns the length of a FLAC file whose header doesn't declare
// it, as of encoders that write to a pipe: the last frame's position minus the
// first one's (RFC 9639, sections 8 and 9). It returns 0 if the header declares
// the length or no last frame with a valid checksum is found.
func flacSeconds(f io.ReaderAt, size int64) (float64, error) {
	info, at, err := flacStreamInfo(f, size)
	if err != nil || info.rate == 0 || info.samples != 0 {
		return 0, err
	}
	var head [16]byte
	n, err := readAt(f, head[:], at)
	if err != nil {
		return 0, err
	}
	first, ok := info.frame(head[:n])
	if !ok {
		return 0, nil
	}
	begin := max(at, size-flacTail)
	tail := make([]byte, size-begin)
	if n, err = readAt(f, tail, begin); err != nil {
		return 0, err
	}
	tail = tail[:n]
	if id3 := n - 128; id3 >= 0 && string(tail[id3:id3+3]) == "TAG" {
		tail = tail[:id3]
	}
	last, ok := info.lastFrame(tail)
	if !ok || last.begin < first.begin {
		return 0, nil
	}
	return float64(last.begin-first.begin+last.samples) / float64(info.rate), nil
}

// flacInfo holds the fields of STREAMINFO used here.
type flacInfo struct {
	block   int64 // samples in every frame but the last one, if constant
	rate    int64 // Hz
	samples int64 // of one channel; 0 if unknown
}

// flacStreamInfo reads the metadata headers; at is the offset of the first
// frame. A rate of 0 means that this is not a FLAC file.
func flacStreamInfo(f io.ReaderAt, size int64) (info flacInfo, at int64, err error) {
	if at, err = skipID3(f); err != nil {
		return info, at, err
	}
	var b [38]byte
	if _, err = readAt(f, b[:4], at); err != nil || string(b[:4]) != "fLaC" {
		return info, at, err
	}
	at += 4
	for at < size {
		n, err := readAt(f, b[:], at)
		if err != nil || n < 4 {
			return flacInfo{}, at, err
		}
		length := int64(bigEndian(b[1:4]))
		if b[0]&0x7f == 0 && n == len(b) && length == 34 {
			if low, high := binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:]); low == high {
				info.block = int64(low)
			}
			packed := binary.BigEndian.Uint64(b[14:]) // 20 bits of rate, 3 of channels, 5 of depth, 36 of samples
			info.rate, info.samples = int64(packed>>44), int64(packed&(1<<36-1))
		}
		at += 4 + length
		if b[0]&0x80 != 0 {
			return info, at, nil
		}
	}
	return flacInfo{}, at, nil
}

// flacFrame is the position of a frame in the stream.
type flacFrame struct{ begin, samples int64 }

// frame reads the header of a frame, whose checksum must be valid.
func (info flacInfo) frame(b []byte) (flacFrame, bool) {
	if len(b) < 6 || b[0] != 0xff || b[1]&0xfe != 0xf8 || b[2]>>4 == 0 || b[2]&15 == 15 || b[3]&1 != 0 {
		return flacFrame{}, false
	}
	number, at := flacNumber(b[4:])
	if at == 0 {
		return flacFrame{}, false
	}
	at += 4
	var fields [3]byte // block size, rate
	copy(fields[:2], b[min(at, len(b)):])
	var samples int64
	switch code := b[2] >> 4; {
	case code == 1:
		samples = 192
	case code < 6:
		samples = 144 << code
	case code == 6:
		samples = int64(fields[0]) + 1
		at++
	case code == 7:
		samples = int64(binary.BigEndian.Uint16(fields[:])) + 1
		at += 2
	default:
		samples = 1 << code
	}
	switch b[2] & 15 {
	case 12:
		at++
	case 13, 14:
		at += 2
	}
	if at >= len(b) || checksum(0x07, 8, b[:at]) != uint32(b[at]) {
		return flacFrame{}, false
	}
	if b[1]&1 == 0 { // it counts frames, not samples
		block := info.block
		if block == 0 {
			block = samples
		}
		number *= block
	}
	return flacFrame{number, samples}, true
}

// lastFrame returns the last frame in b that has a valid checksum and ends
// where the next frame begins or at the end of b.
func (info flacInfo) lastFrame(b []byte) (flacFrame, bool) {
	// Candidate ends, nearest first: a frame may contain bytes like a header.
	ends := []int{len(b)}
	for at := len(b); ; {
		if at = bytes.LastIndexByte(b[:at], 0xff); at < 0 {
			return flacFrame{}, false
		}
		frame, ok := info.frame(b[at:])
		if !ok {
			continue
		}
		for _, end := range ends {
			if end-at > 2 && checksum(0x8005, 16, b[at:end-2]) == uint32(binary.BigEndian.Uint16(b[end-2:])) {
				return frame, true
			}
		}
		ends = append([]int{at}, ends[:min(len(ends), 3)]...)
	}
}

// flacNumber reads the number of a frame or sample, encoded like a UTF-8
// character of up to 36 bits; n is 0 if it is invalid.
func flacNumber(b []byte) (v int64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	ones := bits.LeadingZeros8(^b[0])
	if ones == 0 {
		return int64(b[0]), 1
	}
	if ones == 1 || ones == 8 || len(b) < ones {
		return 0, 0
	}
	v = int64(b[0] & (0xff >> (ones + 1)))
	for _, c := range b[1:ones] {
		if c&0xc0 != 0x80 {
			return 0, 0
		}
		v = v<<6 | int64(c&0x3f)
	}
	return v, ones
}

// checksum returns the remainder of b divided by a polynomial of some bits.
func checksum(polynomial uint32, bits int, b []byte) uint32 {
	var sum uint32
	for _, c := range b {
		sum ^= uint32(c) << (bits - 8)
		for range 8 {
			sum <<= 1
			if sum>>bits != 0 {
				sum ^= 1<<bits | polynomial
			}
		}
	}
	return sum
}
