package audio

import (
	"bytes"
	"cmp"
	_ "embed" // the list of containers
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// container is an accepted file format.
type container struct {
	name    string
	demuxer string // ffmpeg's name for it, the only demuxer that ffmpeg may use
	length  lengthKind
}

// lengthKind is the trustworthiness of a container's duration.
type lengthKind int

const (
	declared lengthKind = iota
	exact               // counts samples, so a length over the limit is refused before decoding
	likely              // the same, but some writers leave it wrong
	guessed             // the container has no duration field; ffprobe estimates one from the bit rate
)

var (
	wavContainer  = container{"wav", "wav", exact}
	mp3Container  = container{"mp3", "mp3", likely}
	adtsContainer = container{"aac", "aac", guessed}
)

// magic is a container identified by one of some strings at a fixed offset.
type magic struct {
	container
	at    int
	marks []string
}

// magicLines has a line for each magic: the container, its demuxer, its
// lengthKind, the offset, and the strings as in Go. Playlists, scripts, images,
// archives and subtitles are left out, even if ffmpeg can read them.
//
//go:embed magics.txt
var magicLines string

var magics = func() (list []magic) {
	kinds := map[string]lengthKind{"declared": declared, "exact": exact, "likely": likely, "guessed": guessed}
	for line := range strings.Lines(magicLines) {
		fields := strings.Fields(line)
		at, err := strconv.Atoi(fields[3])
		m := magic{container: container{fields[0], fields[1], kinds[fields[2]]}, at: at}
		for _, quoted := range fields[4:] {
			mark, wrong := strconv.Unquote(`"` + quoted + `"`)
			m.marks, err = append(m.marks, mark), cmp.Or(err, wrong)
		}
		if err != nil {
			panic(fmt.Sprintf("audio: the embedded list of containers: %q: %v", line, err)) // a build error
		}
		list = append(list, m)
	}
	return list
}()

// sniffWindow is the number of bytes examined after any ID3 tags.
const sniffWindow = 64 << 10

// errFarTag is returned if an ID3 tag reaches beyond the available bytes.
var errFarTag = errors.New("the ID3 tag is longer")

// sniff recognizes a container by its content. The reader may hold only the
// beginning of the recording; errFarTag requests more of it.
func sniff(r io.ReaderAt) (container, error) {
	at, err := skipID3(r)
	if err != nil {
		return container{}, err
	}
	buf := make([]byte, sniffWindow)
	n, err := readAt(r, buf, at)
	if err != nil {
		return container{}, err
	}
	head := buf[:n]
	if at > 0 && n == 0 {
		// The tag is longer than the file; frames may be within it.
		if n, err = readAt(r, buf, 0); err != nil {
			return container{}, err
		}
		if c, ok := rawStream(buf[:n], true); ok {
			return c, nil
		}
		return container{}, errFarTag
	}
	if c, ok := byMagic(head); ok && (at == 0 || c.name == "flac") {
		return c, nil
	}
	c, _ := rawStream(head, at > 0)
	return c, nil
}

// CheckHead checks the first 64 KiB (or all, if smaller) of a file called name.
// It returns an error, which spec.IsPermanent reports, if the file is not in an
// accepted container. A nil error means that it may be a recording.
func CheckHead(name string, head []byte) error {
	_, err := sniffHead(name, head)
	return err
}

// sniffHead is sniff for sniffWindow bytes; an ID3 tag may hide the container.
func sniffHead(name string, head []byte) (container, error) {
	c, err := sniff(bytes.NewReader(head))
	if c.name == "" && err == nil && id3Size(head) == 0 {
		return c, unrecognized(name, head)
	}
	return c, nil
}

func readAt(r io.ReaderAt, b []byte, at int64) (int, error) {
	n, err := r.ReadAt(b, at)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// id3Size returns the length of the ID3v2 tag at the start of b, 0 without one.
func id3Size(b []byte) int64 {
	if len(b) < 10 || string(b[:3]) != "ID3" || b[3] == 0xff || b[4] == 0xff || (b[6]|b[7]|b[8]|b[9])&0x80 != 0 {
		return 0
	}
	size := 10 + int64(b[6])<<21 + int64(b[7])<<14 + int64(b[8])<<7 + int64(b[9])
	if b[5]&0x10 != 0 { // a footer repeats the header
		size += 10
	}
	return size
}

// skipID3 returns the offset after the ID3v2 tags at the beginning of a file;
// some tools write several in a row.
func skipID3(r io.ReaderAt) (at int64, err error) {
	var b [10]byte
	for range 8192 {
		n, err := readAt(r, b[:], at)
		size := id3Size(b[:n])
		if err != nil || size == 0 {
			return at, err
		}
		at += size
	}
	return at, nil
}

// forms lists the containers of chunks by their first four bytes and form type.
var forms = map[string]container{
	"RIFFWAVE": wavContainer, "RIFXWAVE": wavContainer, "RF64WAVE": wavContainer, "BW64WAVE": wavContainer,
	"RIFFAVI ": {"avi", "avi", declared},
	"RIFFXWMA": {"xwma", "xwma", exact},
	"RIFFQLCM": {"qcp", "qcp", guessed},
	"FORMAIFF": {"aiff", "aiff", exact}, "FORMAIFC": {"aiff", "aiff", exact},
	"FORM8SVX": {"svx", "iff", declared}, "FORM16SV": {"svx", "iff", declared}, "FORMMAUD": {"svx", "iff", declared},
}

func byMagic(b []byte) (container, bool) {
	if len(b) >= 12 {
		if c, ok := forms[string(b[:4])+string(b[8:12])]; ok {
			return c, true
		}
	}
	for _, m := range magics {
		rest := b[min(m.at, len(b)):]
		if slices.ContainsFunc(m.marks, func(mark string) bool { return bytes.HasPrefix(rest, []byte(mark)) }) {
			return m.container, true
		}
	}
	return container{}, false
}

// rawStream recognizes formats that consist only of frames: it requires several
// headers, each at the offset implied by the previous one. If tagged, an ID3
// tag was found and fewer headers are enough.
func rawStream(b []byte, tagged bool) (container, bool) {
	if n := transportPackets(b); n != 0 {
		return container{"mpegts", "mpegts", declared}, true
	}
	if len(b) >= 6 && b[0] == 0x0b && b[1] == 0x77 {
		if b[5]>>3 > 10 {
			return container{"eac3", "eac3", guessed}, true
		}
		return container{"ac3", "ac3", guessed}, true
	}
	if chain(b, loasFrame, true) {
		return container{"aac", "loas", guessed}, true
	}
	for i := 0; i+4 <= len(b); i++ {
		j := bytes.IndexByte(b[i:], 0xff)
		if j < 0 {
			break
		}
		i += j
		if chain(b[i:], mpegFrame, tagged || i == 0) {
			return mp3Container, true
		}
		if chain(b[i:], adtsFrame, tagged || i == 0) {
			return adtsContainer, true
		}
	}
	return container{}, false
}

// chain reports whether b starts with four frames, or with two and then ends.
func chain(b []byte, frame func([]byte) (size int, kind uint32), expected bool) bool {
	_, kind := frame(b)
	for n := 0; ; n++ {
		size, k := frame(b)
		switch {
		case n == 4:
			return true
		case size == 0 || k != kind:
			// the end of the file, or its ID3v1 tag
			return expected && n >= 2 && (len(b) < 4 || string(b[:3]) == "TAG")
		case size >= len(b):
			return expected && n >= 1
		}
		b = b[size:]
	}
}

// mpegFrame reads the header of an MPEG audio frame (ISO 11172-3, 13818-3): its
// length in bytes, or 0, and the fields that do not change within a stream.
func mpegFrame(b []byte) (size int, kind uint32) {
	if len(b) < 4 {
		return 0, 0
	}
	h := binary.BigEndian.Uint32(b)
	version, layer := h>>19&3, 4-int(h>>17&3)
	rateIndex, bits := h>>10&3, h>>12&15
	if h>>21 != 0x7ff || version == 1 || layer == 4 || rateIndex == 3 || bits == 0 || bits == 15 {
		return 0, 0
	}
	rate := [3]int{44100, 48000, 32000}[rateIndex]
	table := 4
	switch {
	case version == 3: // MPEG-1
		table = layer - 1
	case layer == 1:
		table = 3
	}
	kbps := [5][15]int{
		{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	}[table][bits]
	samples := 1152
	switch version {
	case 2:
		rate /= 2
	case 0:
		rate /= 4
	}
	pad := int(h >> 9 & 1)
	switch {
	case layer == 1:
		return (12*kbps*1000/rate + pad) * 4, h & 0xfffe0c00
	case layer == 3 && version != 3:
		samples = 576
	}
	return samples/8*kbps*1000/rate + pad, h & 0xfffe0c00
}

// adtsFrame reads the header of an AAC frame in ADTS (ISO 13818-7).
func adtsFrame(b []byte) (size int, kind uint32) {
	if len(b) < 7 || b[0] != 0xff || b[1]&0xf6 != 0xf0 || b[2]>>2&15 > 12 {
		return 0, 0
	}
	size = int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5])>>5
	if size < 8 {
		return 0, 0
	}
	return size, uint32(b[1])<<16 | uint32(b[2]&0xfd)<<8 | uint32(b[3]&0xc0)
}

// loasFrame reads the header of an AAC frame in LOAS (ISO 14496-3).
func loasFrame(b []byte) (size int, kind uint32) {
	if len(b) < 3 || b[0] != 0x56 || b[1]&0xe0 != 0xe0 {
		return 0, 0
	}
	return 3 + int(b[1]&0x1f)<<8 + int(b[2]), 1
}

// transportPackets recognizes MPEG-TS by its sync bytes and returns the packet
// length, or 0 if b isn't MPEG-TS.
func transportPackets(b []byte) int {
	for _, p := range []struct{ size, at int }{{188, 0}, {192, 4}, {204, 0}} {
		n := 0
		for i := p.at; i < len(b) && b[i] == 0x47; i += p.size {
			n++
		}
		if n >= 5 && (p.at+n*p.size >= len(b) || n >= 16) {
			return p.size
		}
	}
	return 0
}
