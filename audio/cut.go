package audio

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// cutShort reports whether a file ends earlier than its own structure declares:
// inside a chunk, page or frame, or before the size in a header. A cut between
// two frames of a format without a declared size can't be detected. ffmpeg
// itself reports a cut inside a frame of AMR, and inside a packet of DSDIFF.
func cutShort(f io.ReaderAt, size int64, c container) (bool, error) {
	end, err := structureEnd(f, size, c)
	return end > size, err
}

// structureEnd returns the earliest offset at which a file may end, or 0.
func structureEnd(f io.ReaderAt, size int64, c container) (int64, error) {
	switch c.demuxer {
	case "mov":
		return walkChunks(f, size, 0, boxHeader)
	case "wav", "xwma", "avi":
		return formEnd(f, size, binary.LittleEndian)
	case "aiff", "iff":
		return formEnd(f, size, binary.BigEndian)
	case "caf":
		return walkChunks(f, size, 8, cafHeader)
	case "w64":
		return field(f, 16, binary.LittleEndian.Uint64)
	case "au":
		return auEnd(f)
	case "asf":
		return asfEnd(f)
	case "matroska":
		return matroskaEnd(f)
	case "ogg":
		return oggEnd(f, size)
	case "mp3", "aac", "mpeg", "mpegts", "dts":
		return framesEnd(f, size, c)
	case "flv":
		return flvEnd(f, size)
	}
	return 0, nil
}

// implausible reports whether n is a placeholder of a writer to a pipe.
func implausible(n uint64) bool { return n == 0 || n >= math.MaxInt64/2 }

// field returns a number of 8 bytes at an offset, 0 if it can't be a size.
func field(f io.ReaderAt, at int64, number func([]byte) uint64) (int64, error) {
	var b [8]byte
	n, err := readAt(f, b[:], at)
	if v := number(b[:]); n == len(b) && !implausible(v) {
		return int64(v), err
	}
	return 0, err
}

// chunkHeader returns the length of the chunk at the start of b with its
// header, or 0 if it doesn't declare it; ok is false if b starts with no chunk.
type chunkHeader func(b []byte) (length int64, ok bool)

// walkChunks returns the end of the last consecutive chunk from an offset.
func walkChunks(f io.ReaderAt, size, at int64, header chunkHeader) (int64, error) {
	var b [16]byte
	for range 1 << 20 { // bounds the reads in a file of empty chunks
		if at >= size {
			return at, nil
		}
		n, err := readAt(f, b[:], at)
		if err != nil {
			return 0, err
		}
		if n < 8 {
			return at + 8, nil
		}
		length, ok := header(b[:n])
		if !ok || length == 0 { // not a chunk, or one that extends to the end
			return 0, nil
		}
		at += length
	}
	return 0, nil
}

// boxHeader reads a box of MP4 (ISO 14496-12).
func boxHeader(b []byte) (int64, bool) {
	length := uint64(binary.BigEndian.Uint32(b))
	if length == 1 && len(b) == 16 {
		length = binary.BigEndian.Uint64(b[8:])
	}
	return int64(length), isChunkID(b[4:8]) && length < math.MaxInt64/2 && (length >= 8 || length == 0)
}

// sealedBoxes reports whether an MP4 file has an encrypted audio track (ISO
// 14496-12, 8.12), which ffmpeg describes like a plain one.
func sealedBoxes(f io.ReaderAt, size int64) bool {
	const most = 32 << 20
	var moov []byte
	at := int64(0)
	_, _ = walkChunks(f, size, 0, func(b []byte) (int64, bool) {
		length, ok := boxHeader(b)
		if string(b[4:8]) == "moov" && ok {
			moov = make([]byte, max(0, min(length, size-at, most)))
			_, _ = readAt(f, moov, at)
		}
		at += length
		return length, ok
	})
	return bytes.Contains(moov, []byte("enca")) && bytes.Contains(moov, []byte("sinf\x00\x00\x00\x0cfrma"))
}

// cafHeader reads a chunk of a CAF file.
func cafHeader(b []byte) (int64, bool) {
	if len(b) < 12 || !isChunkID(b[:4]) {
		return 0, false
	}
	length := binary.BigEndian.Uint64(b[4:])
	if implausible(length) && length != 0 {
		return 0, true
	}
	return 12 + int64(length), true
}

// formEnd returns the end of the chunks of a RIFF or IFF file, or of the whole
// form if chunks are missing. The padding byte of the last chunk may be absent.
func formEnd(f io.ReaderAt, size int64, order binary.ByteOrder) (int64, error) {
	var b [8]byte
	if n, err := readAt(f, b[:], 0); n < len(b) {
		return 0, err
	}
	if string(b[:4]) != "RIFF" && string(b[:4]) != "FORM" { // RF64 and others store their sizes elsewhere
		return 0, nil
	}
	form := order.Uint32(b[4:])
	if form == 0 || form >= streamingSize {
		return 0, nil
	}
	var pad int64
	end, err := walkChunks(f, size, 12, func(b []byte) (int64, bool) {
		length := int64(order.Uint32(b[4:]))
		pad = length & 1
		if length >= streamingSize {
			return 0, true
		}
		return 8 + length + length&1, isChunkID(b[:4])
	})
	if end == 0 {
		return 0, err
	}
	return max(end, int64(form)+8) - pad, err
}

// auEnd reads the header of an AU file.
func auEnd(f io.ReaderAt) (int64, error) {
	var b [12]byte
	n, err := readAt(f, b[:], 0)
	length := binary.BigEndian.Uint32(b[8:])
	if n < len(b) || length >= streamingSize {
		return 0, err
	}
	return int64(binary.BigEndian.Uint32(b[4:])) + int64(length), err
}

// asfProperties identifies the object that holds the size of an ASF file.
const asfProperties = "\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65"

func asfEnd(f io.ReaderAt) (int64, error) {
	head := make([]byte, sniffWindow)
	n, err := readAt(f, head, 0)
	at := bytes.Index(head[:n], []byte(asfProperties))
	if at < 0 || err != nil {
		return 0, err
	}
	return field(f, int64(at)+40, binary.LittleEndian.Uint64)
}

// matroskaEnd returns the end of the segment, the second element (RFC 9559).
func matroskaEnd(f io.ReaderAt) (int64, error) {
	head := make([]byte, 4096)
	n, err := readAt(f, head, 0)
	if err != nil {
		return 0, err
	}
	head = head[:n]
	length, width := ebmlSize(head[min(4, n):])
	at := int64(4+width) + length
	if width == 0 || length < 0 || at+12 > int64(n) || string(head[at:at+4]) != "\x18\x53\x80\x67" {
		return 0, nil
	}
	if length, width = ebmlSize(head[at+4:]); width == 0 || length < 0 {
		return 0, nil
	}
	return at + 4 + int64(width) + length, nil
}

// oggTail is the longest page (RFC 3533) plus room for trailing bytes.
const oggTail = 65307 + 512

// oggEnd returns an offset after the end of the file if its last page is
// incomplete or not marked as the last one of its stream.
func oggEnd(f io.ReaderAt, size int64) (int64, error) {
	begin := max(0, size-oggTail)
	tail := make([]byte, size-begin)
	n, err := readAt(f, tail, begin)
	if err != nil {
		return 0, err
	}
	tail = tail[:n]
	at := bytes.LastIndex(tail, []byte("OggS"))
	if at < 0 {
		return 0, nil // other bytes follow
	}
	page := tail[at:]
	if length, flags := oggPage(page); length == 0 || length > len(page) || flags&oggLast == 0 {
		return size + 1, nil
	}
	return 0, nil
}

// Flags of an Ogg page.
const (
	oggFirst = 2 // the first page of its stream
	oggLast  = 4
)

// oggPage returns a page's length and flags; 0 if b holds no whole page header.
func oggPage(b []byte) (length int, flags byte) {
	if len(b) < 27 || string(b[:4]) != "OggS" || len(b) < 27+int(b[26]) {
		return 0, 0
	}
	length = 27 + int(b[26])
	for _, s := range b[27:length] {
		length += int(s)
	}
	return length, b[5]
}

// flvEnd returns the size that the metadata of an FLV file hold, or else checks
// its last tag, which is followed by the tag's length.
func flvEnd(f io.ReaderAt, size int64) (int64, error) {
	const key = "filesize\x00" // and a number
	head := make([]byte, 4096)
	n, err := readAt(f, head, 0)
	if err != nil {
		return 0, err
	}
	if at := bytes.Index(head[:n], []byte(key)); at >= 0 && at+len(key)+8 <= n {
		declared := math.Float64frombits(binary.BigEndian.Uint64(head[at+len(key):]))
		if declared >= 1 && declared < math.MaxInt64/2 {
			return int64(declared), nil
		}
	}
	if size < 8 {
		return size + 1, nil
	}
	last, err := field(f, size-8, func(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b[4:])) })
	if err != nil || last+4 > size {
		return size + 1, err
	}
	var b [4]byte
	if _, err := readAt(f, b[:], size-4-last); err != nil {
		return 0, err
	}
	if data := int64(bigEndian(b[1:])); data+11 != last {
		return size + 1, nil
	}
	return 0, nil
}
