package audio

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
)

// Elements of Matroska (RFC 9559) that hold the samples and their times.
const (
	matroskaSegment     = 0x18538067
	matroskaTracks      = 0x1654ae6b
	matroskaTrack       = 0xae
	matroskaAudio       = 0xe1
	matroskaRate        = 0xb5
	matroskaChannels    = 0x9f
	matroskaCluster     = 0x1f43b675
	matroskaTime        = 0xe7
	matroskaGroup       = 0xa0
	matroskaBlock       = 0xa1
	matroskaSimpleBlock = 0xa3
)

// errMatroska is returned for output that ffmpeg doesn't write.
var errMatroska = errors.New("not the expected Matroska stream of one track of samples")

// matroskaReader reads the samples of the only track of a Matroska stream, as
// ffmpeg writes it, and passes on the time of each block, in milliseconds.
type matroskaReader struct {
	r        *bufio.Reader
	rate     float64
	channels uint64
	cluster  int64   // time of the cluster
	time     int64   // of the block
	last     int64   // time of the block before
	left     int64   // unread bytes of the block
	fresh    bool    // nothing of the block has been read
	second   float64 // bytes of a second of samples
	// block is called with the time and the length of each block in seconds; the
	// time is NaN if it is unknown.
	block func(time, length float64)
}

// readHeader reads up to the first sample.
func (m *matroskaReader) readHeader() (*wavHeader, error) {
	m.last = math.MinInt64
	if err := m.next(); err != nil {
		return nil, err
	}
	if !(m.rate >= minWAVRate && m.rate <= maxWAVRate) || m.channels < 1 || m.channels > maxChannels {
		return nil, errMatroska
	}
	h := floatHeader("matroska", int(m.rate), int(m.channels))
	m.second = float64(h.align) * m.rate
	return h, nil
}

// Read reads samples.
func (m *matroskaReader) Read(p []byte) (int, error) {
	for m.left == 0 {
		if err := m.next(); err != nil {
			return 0, err
		}
	}
	if m.fresh {
		m.fresh = false
		time := float64(m.time) / 1000
		if m.time <= m.last+1 {
			time = math.NaN() // ffmpeg writes this instead of a time that goes back
		}
		m.last = m.time
		m.block(time, float64(m.left)/m.second)
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// next reads up to the samples of the next block. The error is io.EOF at the
// end of the stream, even inside an element; ffmpeg's exit status explains it.
func (m *matroskaReader) next() error {
	for {
		id, length, err := m.element()
		if err != nil {
			return err
		}
		switch id {
		case matroskaSegment, matroskaTracks, matroskaTrack, matroskaAudio, matroskaCluster, matroskaGroup:
			continue // their elements follow
		case matroskaBlock, matroskaSimpleBlock:
			return m.beginBlock(length)
		case matroskaRate, matroskaChannels, matroskaTime:
			err = m.number(id, length)
		default:
			err = m.skip(length)
		}
		if err != nil {
			return err
		}
	}
}

// element reads the header of an element; its length is −1 if it is unknown.
func (m *matroskaReader) element() (id uint32, length int64, err error) {
	b, err := m.r.Peek(12)
	if len(b) == 0 {
		return 0, 0, err
	}
	width := bits.LeadingZeros8(b[0]) + 1
	if width > 4 {
		return 0, 0, errMatroska
	}
	length, n := ebmlSize(b[min(width, len(b)):])
	if n == 0 {
		return 0, 0, cmp.Or(err, errMatroska)
	}
	id = uint32(bigEndian(b[:width]))
	_, err = m.r.Discard(width + n)
	return id, length, err
}

// beginBlock reads the header of a block: track, time in the cluster, flags.
func (m *matroskaReader) beginBlock(length int64) error {
	const header = 4
	b, err := m.r.Peek(header)
	switch {
	case err != nil:
		return err
	case length < header || b[0] != 0x81 || b[3]&6 != 0: // of the first track, without lacing
		return errMatroska
	}
	m.time = m.cluster + int64(int16(binary.BigEndian.Uint16(b[1:])))
	m.left, m.fresh = length-header, true
	_, err = m.r.Discard(header)
	return err
}

// number reads an element that holds a number.
func (m *matroskaReader) number(id uint32, length int64) error {
	if length < 0 || length > 8 {
		return errMatroska
	}
	b, err := m.r.Peek(int(length))
	if err != nil {
		return err
	}
	n := bigEndian(b)
	switch id {
	case matroskaTime:
		m.cluster = int64(n)
	case matroskaChannels:
		m.channels = n
	case matroskaRate:
		m.rate = math.Float64frombits(n)
		if length == 4 {
			m.rate = float64(math.Float32frombits(uint32(n)))
		}
	}
	return m.skip(length)
}

func (m *matroskaReader) skip(n int64) error {
	if n < 0 {
		return errMatroska
	}
	_, err := io.CopyN(io.Discard, m.r, n)
	return err
}

// ebmlSize reads an element's size, −1 if unknown, of width bytes; width is 0
// if b holds no size.
func ebmlSize(b []byte) (length int64, width int) {
	if len(b) == 0 || b[0] == 0 {
		return 0, 0
	}
	width = bits.LeadingZeros8(b[0]) + 1
	if len(b) < width {
		return 0, 0
	}
	most := int64(1)<<(7*width) - 1
	if length = int64(bigEndian(b[:width])) & most; length == most {
		return -1, width
	}
	return length, width
}

// bigEndian returns the number that at most eight bytes hold.
func bigEndian(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}
