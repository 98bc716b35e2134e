package audio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const (
	maxChannels   = 64
	minWAVRate    = 1000       // Hz; at lower rates, a few kilobytes would be hours
	maxWAVRate    = 768000     // Hz
	maxWAVHeader  = 16 << 20   // bytes before the samples
	streamingSize = 0x7fff0000 // least data size that is a placeholder of programs that write to a pipe
	untilEOF      = int64(-1)
)

// WAVE format tags.
const (
	tagPCM        = 0x0001
	tagFloat      = 0x0003
	tagALaw       = 0x0006
	tagMuLaw      = 0x0007
	tagExtensible = 0xfffe
)

// wavCompressed holds the tags that ffmpeg decodes.
var wavCompressed = map[uint16]string{
	0x0002: "adpcm_ms", 0x0011: "adpcm_ima_wav", 0x0020: "adpcm_yamaha", 0x0022: "truespeech", 0x0031: "gsm_ms",
	0x0040: "g726", 0x0042: "g723_1", 0x0045: "g726", 0x0050: "mp2", 0x0055: "mp3", 0x0064: "g726", 0x0069: "adpcm_ima_wav",
	0x00ff: "aac", 0x0160: "wmav1", 0x0161: "wmav2", 0x0162: "wmapro", 0x0163: "wmalossless", 0x028f: "adpcm_g722",
	0x1602: "aac_latm", 0x1610: "aac", 0x2000: "ac3", 0x2001: "dts", 0xa109: "speex", 0xf1ac: "flac",
}

// guidTail ends the sub-formats of WAVE_FORMAT_EXTENSIBLE with a plain tag.
const guidTail = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"

// wavHeader holds the fields before the samples.
type wavHeader struct {
	container      string // wav, rifx, rf64, bw64
	order          binary.ByteOrder
	tag            uint16 // of the samples; the sub-format's if extensible
	channels, rate int
	width          int   // bytes per sample of one channel; 0 if compressed
	align          int   // bytes per frame (per block if compressed)
	data           int64 // bytes of samples according to the header, or untilEOF
	codec          string
	convert        convert // nil when compressed
}

// tape reads a header front to back and keeps the bytes, so that the stream can
// still be passed to ffmpeg from its first byte.
type tape struct {
	r    *bufio.Reader
	name string // of the source, for errors
	kept []byte
}

// fault returns an error in the header.
func (t *tape) fault(kind error, format string, args ...any) error {
	return fault(kind, t.name, format, args...)
}

func (t *tape) read(n int, what string) ([]byte, error) {
	at := len(t.kept)
	if at+n > maxWAVHeader {
		return nil, t.fault(ErrCorrupt, "no samples within the first %d MiB, expected a data chunk", maxWAVHeader>>20)
	}
	t.kept = append(t.kept, make([]byte, n)...)
	m, err := io.ReadFull(t.r, t.kept[at:])
	t.kept = t.kept[:at+m]
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, t.fault(ErrCorrupt, "it ends after %d bytes inside %s", len(t.kept), what)
	}
	return t.kept[at:], err
}

// skip skips n bytes in pieces: a size from the header is never allocated.
func (t *tape) skip(n int64, what string) error {
	for n > 0 {
		step := int(min(n, 4096))
		if _, err := t.read(step, what); err != nil {
			return err
		}
		n -= int64(step)
	}
	return nil
}

// riffForm is one of the possible beginnings of a file.
type riffForm struct {
	name  string
	order binary.ByteOrder
	long  bool // a ds64 chunk may hold the size of the samples
}

var riffForms = map[string]riffForm{
	"RIFF": {"wav", binary.LittleEndian, false},
	"RIFX": {"rifx", binary.BigEndian, false},
	"RF64": {"rf64", binary.LittleEndian, true},
	"BW64": {"bw64", binary.LittleEndian, true},
}

// readWAVHeader reads up to the first byte of samples. Layout: Microsoft/IBM
// "Multimedia Programming Interface and Data Specifications 1.0" (RIFF, WAVE),
// "Multiple channel audio data and WAVE files" (extensible), EBU Tech 3306
// (RF64), ITU-R BS.2088 (BW64). Sizes in the header are only hints, because
// writers that cannot seek leave 0 or 0xFFFFFFFF there.
func readWAVHeader(t *tape) (*wavHeader, error) {
	head, err := t.read(12, "the RIFF header")
	if err != nil {
		return nil, err
	}
	container, ok := riffForms[string(head[:4])]
	if !ok {
		return nil, t.fault(ErrUnsupported, "it begins with %q, expected RIFF, RIFX, RF64 or BW64", head[:4])
	}
	if form := string(head[8:12]); form != "WAVE" {
		return nil, t.fault(ErrUnsupported, "a RIFF file of form %q, expected WAVE", form)
	}
	h := &wavHeader{container: container.name, order: container.order}
	formSize := h.order.Uint32(head[4:])
	long := int64(-1) // data size from ds64
	for {
		b, err := t.read(8, "the list of chunks (no data chunk yet)")
		if err != nil {
			return nil, err
		}
		id, size := string(b[:4]), int64(h.order.Uint32(b[4:]))
		var body []byte
		switch {
		case id == "data" && h.channels == 0:
			return nil, t.fault(ErrCorrupt, "the data chunk comes before any fmt chunk")
		case id == "data":
			h.data = h.dataSize(t, size, long, formSize)
			return h, nil
		case id == "fmt " && h.channels == 0: // only the first one counts
			if size < 16 || size > 4096 {
				return nil, t.fault(ErrCorrupt, "the fmt chunk announces %d bytes, expected 16 to 4096", size)
			}
			if body, err = t.read(int(size), "the fmt chunk"); err == nil {
				err = h.format(t, body)
			}
		case id == "LIST" && size >= 4:
			if body, err = t.read(4, "a LIST chunk"); err == nil && string(body) == "wavl" {
				return nil, t.fault(ErrUnsupported, "its samples are in a list of chunks (LIST wavl), expected one data chunk after another")
			}
		case id == "ds64" && container.long && size >= 28:
			if body, err = t.read(28, "the ds64 chunk"); err == nil {
				if v := h.order.Uint64(body[8:]); v > 0 && v < 1<<62 {
					long = int64(v)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		// An odd size is padded.
		if err := t.skip(size+size&1-int64(len(body)), fmt.Sprintf("the %q chunk, which announces %d bytes", id, size)); err != nil {
			return nil, err
		}
	}
}

// dataSize returns the number of bytes of samples.
func (h *wavHeader) dataSize(t *tape, size, long int64, formSize uint32) int64 {
	switch {
	case size == math.MaxUint32 && long >= 0:
		return long
	case size >= streamingSize:
		return untilEOF
	case size > 0:
		return size
	}
	// A size of 0 means an empty recording or a header that was never
	// completed. Bytes after it that are not a chunk are samples.
	next, _ := t.r.Peek(8)
	if len(next) == 0 || formSize != 0 && formSize != math.MaxUint32 && len(next) == 8 && isChunkID(next[:4]) {
		return 0
	}
	return untilEOF
}

func isChunkID(id []byte) bool {
	return !slices.ContainsFunc(id, func(c byte) bool { return c < ' ' || c > '~' })
}

// format reads a fmt chunk.
func (h *wavHeader) format(t *tape, b []byte) error {
	h.tag = h.order.Uint16(b)
	channels, rate := int(h.order.Uint16(b[2:])), int64(h.order.Uint32(b[4:]))
	// B[8:12], bytes per second, is often wrong and never needed.
	align, bits := int(h.order.Uint16(b[12:])), int(h.order.Uint16(b[14:]))
	if h.tag == tagExtensible {
		if len(b) < 40 {
			return t.fault(ErrCorrupt, "an extensible fmt chunk of %d bytes, expected 40", len(b))
		}
		if string(b[26:40]) != guidTail {
			return t.fault(ErrUnsupported, "an extensible fmt chunk with the unknown sub-format %x", b[24:40])
		}
		h.tag = h.order.Uint16(b[24:])
	}
	if channels < 1 || channels > maxChannels {
		return t.fault(ErrCorrupt, "the fmt chunk says %d channels, expected 1 to %d", channels, maxChannels)
	}
	if rate < minWAVRate || rate > maxWAVRate {
		return t.fault(ErrCorrupt, "the fmt chunk says %d samples per second, expected %d to %d", rate, minWAVRate, maxWAVRate)
	}
	h.channels, h.rate, h.align = channels, int(rate), align
	if codec, ok := wavCompressed[h.tag]; ok {
		if align == 0 {
			return t.fault(ErrCorrupt, "the fmt chunk says blocks of 0 bytes for %s", codec)
		}
		h.codec = codec
		return nil
	}
	switch h.tag {
	case tagPCM, tagFloat, tagALaw, tagMuLaw:
	default:
		return t.fault(ErrUnsupported, "the fmt chunk says format 0x%04x, which is not PCM, float, A-law, µ-law or a known compressed format", h.tag)
	}
	if bits < 8 || bits > 64 {
		return t.fault(ErrCorrupt, "the fmt chunk says %d bits per sample, expected 8 to 64", bits)
	}
	h.width = (bits + 7) / 8
	if align != 0 { // more than 16 bits may be left-aligned in a wider container; else the header is wrong, as in ffmpeg
		if align%channels != 0 || align/channels < h.width || align/channels > 8 {
			return t.fault(ErrCorrupt, "the fmt chunk says %d bytes per frame for %d channels of %d bits, expected %d", align, channels, bits, channels*h.width)
		}
		if bits > 16 {
			h.width = align / channels
		}
	}
	h.align = h.width * channels
	if !h.setConverter() {
		return t.fault(ErrUnsupported, "samples of format 0x%04x in %d bytes, expected PCM in 1 to 4, float in 4 or 8, A-law or µ-law in 1", h.tag, h.width)
	}
	return nil
}

// setConverter sets the codec and converter, and reports whether there is one.
func (h *wavHeader) setConverter() bool {
	s, ok := wavSamples[wavEncoding{h.tag, h.width}]
	h.codec, h.convert = s.codec, s.convert
	if h.order == binary.ByteOrder(binary.BigEndian) && h.width > 1 {
		h.codec, h.convert = strings.TrimSuffix(s.codec, "le")+"be", s.convert.swapped(h.width)
	}
	return ok
}

// floatHeader describes float32 samples as they are in memory.
func floatHeader(container string, rate, channels int) *wavHeader {
	h := &wavHeader{container: container, order: binary.LittleEndian, tag: tagFloat, rate: rate, channels: channels, width: 4, align: 4 * channels, data: untilEOF}
	h.setConverter()
	return h
}

// wavEncoding is an encoding of samples: format tag and bytes per sample.
type wavEncoding struct {
	tag   uint16
	width int
}

type wavSample struct {
	codec   string
	convert convert
}

// wavSamples holds the converter and the name of each little-endian encoding.
var wavSamples = map[wavEncoding]wavSample{
	{tagPCM, 1}:   {"pcm_u8", fromU8},
	{tagPCM, 2}:   {"pcm_s16le", fromS16},
	{tagPCM, 3}:   {"pcm_s24le", fromS24},
	{tagPCM, 4}:   {"pcm_s32le", fromS32},
	{tagFloat, 4}: {"pcm_f32le", fromF32},
	{tagFloat, 8}: {"pcm_f64le", fromF64},
	{tagALaw, 1}:  {"pcm_alaw", fromTable(&aLaw)},
	{tagMuLaw, 1}: {"pcm_mulaw", fromTable(&muLaw)},
}

// seconds returns the length of n bytes of samples.
func (h *wavHeader) seconds(n int64) float64 { return float64(n/int64(h.align)) / float64(h.rate) }

// wavChunk is the number of bytes of samples converted at a time.
const wavChunk = 1 << 16

// mostChunks is the most chunks that are read after the first data chunk.
const mostChunks = 10_000

// errNoChunk ends a walk over chunks: other bytes follow, or too many chunks.
var errNoChunk = errors.New("no chunk")

// dataChunks walks over the data chunks of a file. Recorders that append to a
// file write several.
type dataChunks struct {
	r     io.Reader // is after the header of the data chunk
	order binary.ByteOrder
	size  int64 // of the data chunk, in bytes, or untilEOF
	read  int   // chunks after the first data chunk
	other bool  // another file, or much that is no chunk, follows
}

// next goes to the next data chunk, over skip bytes and other chunks. Without
// another data chunk, the error is io.EOF, io.ErrUnexpectedEOF or errNoChunk.
func (c *dataChunks) next(skip int64) (err error) {
	var head [8]byte
	for {
		if c.read++; c.read > mostChunks {
			return errNoChunk
		}
		if s, ok := c.r.(io.Seeker); ok {
			_, err = s.Seek(skip, io.SeekCurrent)
		} else {
			_, err = io.CopyN(io.Discard, c.r, skip)
		}
		if err == nil {
			_, err = io.ReadFull(c.r, head[:])
		}
		if err != nil {
			return err
		}
		if _, c.other = riffForms[string(head[:4])]; c.other || !isChunkID(head[:4]) {
			if !c.other { // few bytes or zeros are padding, others samples after a size that is too small
				tail := make([]byte, 64<<10)
				n, _ := io.ReadFull(c.r, tail)
				c.other = n == len(tail) && len(bytes.TrimLeft(tail, "\x00")) > 0
			}
			return errNoChunk
		}
		size := int64(c.order.Uint32(head[4:]))
		if string(head[:4]) == "data" {
			if c.size = size; size >= streamingSize {
				c.size = untilEOF
			}
			return nil
		}
		skip = size + size&1
	}
}

// lost reports whether samples follow the end of the walk, because there are
// too many chunks, the samples' size was never written, or another file follows.
func (c *dataChunks) lost(end error) bool {
	return errors.Is(end, errNoChunk) && (c.read > mostChunks || c.size == 0 || c.other)
}

// decodeWAV reads the samples of all data chunks. cut reports that the last
// chunk declares more.
func decodeWAV(ctx context.Context, r io.Reader, h *wavHeader, rec *recorder) (cut bool, err error) {
	c := dataChunks{r: r, order: h.order, size: h.data}
	for err = rec.begin(h.rate, h.channels); err == nil; err = c.next(c.size & 1) {
		size := c.size
		if size == untilEOF {
			size = math.MaxInt64
		}
		got, err := h.decode(ctx, io.LimitReader(r, size), rec)
		if err != nil {
			return false, err
		}
		cut = c.size >= 0 && got < size-size%int64(h.align)
	}
	if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errNoChunk) { //nolint:errorlint // as in meter.Read
		return false, err
	}
	return cut || c.lost(err), rec.end()
}

// decode reads samples to the end and returns the bytes in whole frames.
func (h *wavHeader) decode(ctx context.Context, r io.Reader, rec *recorder) (got int64, err error) {
	chunk := max(1, wavChunk/h.align) * h.align
	buf := make([]byte, chunk)
	samples := make([]float32, chunk/h.width)
	for {
		if err := context.Cause(ctx); err != nil {
			return got, err
		}
		n, err := io.ReadFull(r, buf)
		end := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return got, err
		}
		n -= n % h.align
		out := samples[:n/h.width]
		rec.nonFinite += int64(h.convert(out, buf[:n]))
		if h.tag == tagFloat && integers(buf[:n], h.width) {
			return got, fault(ErrUnsupported, rec.name, "its samples are floats in the range of integers, expected -1 to 1: divide them, as ffmpeg -af volume=1/32768 does")
		}
		got += int64(n)
		if err := rec.write(out, h.channels); err != nil {
			return got, err
		}
		if end {
			return got, nil
		}
	}
}
