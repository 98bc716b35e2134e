package audio

import (
	"bytes"
	"encoding/binary"
	"io"
)

// framesTail is the number of bytes searched at the end of a file of frames.
const framesTail = 64 << 10

// framesEnd returns the end of a file of frames or packets: the end declared by
// the first frame, or else the end of the last one.
func framesEnd(f io.ReaderAt, size int64, c container) (int64, error) {
	first, err := skipID3(f)
	if err != nil {
		return 0, err
	}
	head := make([]byte, 4096)
	n, err := readAt(f, head, first)
	if err != nil {
		return 0, err
	}
	head = head[:n]
	if c.demuxer == "mp3" {
		if length := declaredFrames(head); length > 0 {
			return first + length, nil
		}
	}
	frame := framesOf(c, head)
	_, kind := frame(head)
	begin := max(first, size-framesTail)
	tail := make([]byte, max(0, size-begin))
	if n, err = readAt(f, tail, begin); err != nil || kind == 0 {
		return 0, err
	}
	for i := range max(0, n-4) {
		if end, ok := chainEnd(tail[i:n], frame, kind); ok {
			return begin + int64(i) + end, nil
		}
	}
	return 0, nil
}

// framesOf returns the function that reads a frame's length in a container.
func framesOf(c container, head []byte) func([]byte) (size int, kind uint32) {
	switch c.demuxer {
	case "aac":
		return adtsFrame
	case "mpeg":
		return programPacket
	case "mpegts":
		size := transportPackets(head)
		at := 0
		if size == 192 { // a time precedes the packet
			at = 4
		}
		return func(b []byte) (int, uint32) {
			if len(b) == 0 || len(b) > at && b[at] != 0x47 {
				return 0, 0
			}
			return size, 1
		}
	case "dts":
		return dtsFrame
	}
	return mpegFrame
}

// programPacket reads the header of a pack or packet (ISO 11172-1, 13818-1).
func programPacket(b []byte) (size int, kind uint32) {
	if len(b) < 4 || b[0] != 0 || b[1] != 0 || b[2] != 1 || b[3] < 0xb9 {
		return 0, 0
	}
	switch {
	case b[3] == 0xb9:
		return 4, 1
	case len(b) < 6:
		return 0, 0
	case b[3] > 0xba:
		return 6 + int(b[4])<<8 + int(b[5]), 1
	case b[4]>>4 == 2: // MPEG-1
		return 12, 1
	case len(b) < 14:
		return 14, 1
	}
	return 14 + int(b[13]&7), 1
}

// dtsFrame reads the header of a frame of DTS (ETSI TS 102 114).
func dtsFrame(b []byte) (size int, kind uint32) {
	if len(b) < 8 || string(b[:4]) != "\x7f\xfe\x80\x01" {
		return 0, 0
	}
	return int(b[5]&3)<<12 + int(b[6])<<4 + int(b[7]>>4) + 1, 1
}

// chainEnd returns the end of the last of at least four consecutive frames of a
// kind; ok is false unless they end at another frame, a tag or the end of b.
func chainEnd(b []byte, frame func([]byte) (int, uint32), kind uint32) (end int64, ok bool) {
	for n := 0; ; n++ {
		rest := b[min(end, int64(len(b))):]
		size, k := frame(rest)
		switch {
		case size == 0 && len(rest) < 10 && len(rest) > 0 && n >= 4 && rest[0] == b[0]:
			return int64(len(b)) + 1, true // inside a header
		case len(rest) == 0 || size == 0 || k != kind:
			return end, n >= 4 && (len(rest) == 0 || !bytes.Contains(rest, []byte{0xff}) || string(rest[:min(3, len(rest))]) == "TAG" || string(rest[:min(8, len(rest))]) == "APETAGEX")
		}
		end += int64(size)
	}
}

// declaredFrames returns the length of all frames that the first one declares
// in a Xing, Info or VBRI header, or 0.
func declaredFrames(b []byte) int64 {
	mark := func(name string) int { return bytes.Index(b[:min(len(b), 64)], []byte(name)) }
	at := mark("Xing")
	if at < 0 {
		at = mark("Info")
	}
	if at >= 0 && len(b) >= at+16 {
		flags := binary.BigEndian.Uint32(b[at+4:])
		at += 8
		if flags&1 != 0 { // the number of frames comes first
			at += 4
		}
		if flags&2 != 0 {
			return int64(binary.BigEndian.Uint32(b[at:]))
		}
		return 0
	}
	if at = mark("VBRI"); at >= 0 && len(b) >= at+14 {
		return int64(binary.BigEndian.Uint32(b[at+10:]))
	}
	return 0
}

// flacHeader has the fields of a FLAC file's first metadata block (RFC 9639,
// section 8.2); they are zero if the file has none.
type flacHeader struct {
	rate, channels int
	samples        int64 // of one channel
	framed         bool  // a frame follows the metadata
}

func readFLACHeader(f io.ReaderAt) (h flacHeader, err error) {
	at, err := skipID3(f)
	if err != nil {
		return h, err
	}
	var b [26]byte // the mark, the header of the first block, and the block up to the number
	n, err := readAt(f, b[:], at)
	if err != nil || n < len(b) || string(b[:4]) != "fLaC" || b[4]&0x7f != 0 {
		return h, err
	}
	fields := binary.BigEndian.Uint64(b[18:])
	h.rate, h.channels, h.samples = int(fields>>44), int(fields>>41&7)+1, int64(fields&(1<<36-1))
	for last := false; !last; last = b[0]&0x80 != 0 {
		at += 4
		if n, err = readAt(f, b[:4], at); err != nil || n < 4 {
			return h, err
		}
		at += int64(binary.BigEndian.Uint32(b[:4]) & (1<<24 - 1))
	}
	n, err = readAt(f, b[:2], at+4)
	h.framed = n == 2 && b[0] == 0xff && b[1]&^1 == 0xf8
	return h, err
}
