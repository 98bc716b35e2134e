package audio

import (
	"context"
	"encoding/binary"
	"io"
	"os"

	"github.com/otograph/otograph/internal/system/cage"
)

// Unpack decodes Opus that comes piece by piece: packets (RFC 6716) of one or
// two channels, or else an Ogg or WebM stream, whose first piece has four bytes
// or more. ffmpeg decodes it, and Unpack writes the samples to out: float32,
// little endian, mono, 48 kHz. It returns when in is closed; the caller must
// close in after an error too. The error is ctx's, out's, ErrDecoderMissing, or
// one for which spec.IsPermanent reports true, because Unpack skips no damaged
// piece.
func Unpack(ctx context.Context, in <-chan []byte, packets bool, out io.Writer) error {
	bin, err := findFFmpeg(Options{})
	if err != nil {
		return err
	}
	head := <-in
	if len(head) == 0 {
		return context.Cause(ctx)
	}
	if packets {
		head = append([]byte(opusHeader), opusBlock(0, head)...)
	}
	format, _ := byMagic(head)
	if format.name != "ogg" && format.name != "matroska" {
		return fault(ErrUnsupported, "stream", "expected Opus in Ogg or WebM, got %x…", head[:min(len(head), 8)])
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close() // ends feed
	go feed(w, head, in, packets)
	args := []string{
		"-hide_banner", "-nostats", "-nostdin", "-loglevel", "repeat+level+error", "-xerror", "-protocol_whitelist", "pipe", "-format_whitelist", format.demuxer, "-codec_whitelist", "opus,libopus",
		"-threads", "1", "-probesize", "32", "-analyzeduration", "0", "-f", format.demuxer, "-i", "pipe:3", "-vn", "-sn", "-dn",
		"-af", "aresample=rematrix_maxval=1", "-ac", "1", "-ar", "48000", "-c:a", "pcm_f32le", "-flush_packets", "1", "-f", "f32le", "pipe:1",
	}
	rep := &report{}
	spec := cage.Spec{Bin: bin, Args: args, Input: r, Memory: childMemory, CPU: cpuSeconds(-1), Landlock: Sandbox().Landlock > 0}
	_, err = caged{spec, -1}.run(ctx, rep.line, func(decoded io.Reader) error {
		_, err := io.Copy(out, decoded)
		return err
	})
	if err = rep.judge(err, "stream", bin, Options{}); err == nil && rep.faults > 0 {
		err = fault(ErrCorrupt, "stream", "not Opus: %s", rep.complaint())
	}
	return err
}

// feed writes the pieces to ffmpeg, until they or ffmpeg end.
func feed(w io.WriteCloser, piece []byte, in <-chan []byte, packets bool) {
	defer w.Close()
	more := true
	for n := 1; more; n++ {
		if _, err := w.Write(piece); err != nil {
			return
		}
		if piece, more = <-in; packets {
			piece = opusBlock(n, piece)
		}
	}
}

// opusHeader is the beginning of a Matroska stream (RFC 9559) with one track of
// Opus: EBML's DocType, a segment of unknown size, the track with number, UID,
// type, codec and OpusHead (RFC 7845: no pre-skip, two channels, which also
// suit mono packets), and its rate and channels.
const opusHeader = "\x1aE\xdf\xa3\x8bB\x82\x88matroska\x18S\x80g\x01\xff\xff\xff\xff\xff\xff\xff\x16T\xaek\xb5\xae\xb3\xd7\x81\x01s\xc5\x81\x01\x83\x81\x02\x86\x86A_OPUS" +
	"c\xa2\x93OpusHead\x01\x02\x00\x00\x80\xbb\x00\x00\x00\x00\x00\xe1\x89\xb5\x84G;\x80\x00\x9f\x81\x02"

// opusBlock returns the cluster of packet n: a time that grows, and a SimpleBlock.
func opusBlock(n int, packet []byte) []byte {
	const size = 1 << 56 // of eight bytes
	block := append([]byte("\xe7\x88"), binary.BigEndian.AppendUint64(nil, uint64(20*n))...)
	block = binary.BigEndian.AppendUint64(append(block, 0xa3), size|uint64(4+len(packet)))
	block = append(append(block, "\x81\x00\x00\x80"...), packet...)
	return append(binary.BigEndian.AppendUint64([]byte("\x1fC\xb6u"), size|uint64(len(block))), block...)
}
