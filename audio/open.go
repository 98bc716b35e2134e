package audio

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math"
	"os"
)

// Open decodes a recording. The caller must close the PCM. It returns this
// package's sentinels (test with errors.Is, and with spec.IsPermanent whether
// retrying may help), the cause of ctx, and errors of the file system.
func Open(ctx context.Context, src Source, o Options) (*PCM, error) {
	o = o.withDefaults()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	in, err := receive(ctx, src, o, false)
	if err != nil {
		return nil, err
	}
	defer in.close()
	file, err := tempFile(o.TempDir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rec := &recorder{name: in.name, limit: o.maxSamples(), file: file}
	if o.KeepChannels {
		rec.apart = &channels{dir: o.TempDir}
		defer rec.apart.close()
	}
	if err := in.decode(ctx, o, rec); err != nil {
		return nil, err
	}
	if rec.samples == 0 {
		return nil, fault(ErrNoAudio, in.name, "it contains no samples")
	}
	if max := o.maxSamples(); max >= 0 && rec.samples > max {
		return nil, fault(ErrTooLong, in.name, "it lasts %.4f s, expected at most %g s", float64(rec.samples)/SampleRate, o.MaxSeconds)
	}
	pcm := &PCM{info: in.info, timeline: in.timeline}
	pcm.info.NonFinite = rec.nonFinite
	if pcm.mapped, pcm.samples, err = mapSamples(file, int(rec.samples)); err != nil {
		return nil, err
	}
	pcm.info.Duration = pcm.Duration()
	if o.KeepChannels {
		if pcm.channels, err = rec.apart.pcm(pcm); err != nil {
			return nil, errors.Join(err, pcm.Close())
		}
	}
	return pcm, nil
}

// input is a source under conversion: a stream of samples or a file.
type input struct {
	name     string
	info     Info
	tape     *tape      // positioned at the samples
	header   *wavHeader // of the tape
	meter    *meter     // counts and hashes the bytes that the tape reads; nil for the caller's samples
	file     *os.File   // regular, seekable; nil while a reader is streamed
	timeline Timeline
	container
}

// hashed reports whether all bytes of the source were read.
func (in *input) hashed() bool { return in.info.MD5 != "" }

func (in *input) close() {
	if in.file != nil {
		in.file.Close()
	}
}

// meter counts and hashes the original bytes, up to the limit.
type meter struct {
	ctx    context.Context
	r      io.Reader
	name   string
	max, n int64
	sum    hash.Hash
}

func (m *meter) Read(b []byte) (int, error) {
	if err := context.Cause(m.ctx); err != nil {
		return 0, err
	}
	n, err := m.r.Read(b)
	m.n += int64(n)
	m.sum.Write(b[:n])
	if m.max >= 0 && m.n > m.max {
		return n, fault(ErrTooLarge, m.name, "it has more bytes, expected at most %d", m.max)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // a reader that wraps io.EOF reports a failure, not its end
		err = machineError(m.name, "read", err)
	}
	return n, err
}

func newMeter(ctx context.Context, r io.Reader, name string, limit int64) *meter {
	return &meter{ctx: ctx, r: r, name: name, max: limit, sum: md5.New()}
}

func (m *meter) hex() string { return hex.EncodeToString(m.sum.Sum(nil)) }

// receive opens a source and recognizes it; spool copies any reader to a file.
func receive(ctx context.Context, src Source, o Options, spool bool) (in *input, err error) {
	if src == nil {
		return nil, fault(ErrUnsupported, "", "there is no source, expected File, Reader or Raw")
	}
	in = &input{name: src.Name()}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	var peeked *bufio.Reader
	switch s := src.(type) {
	case rawSource:
		return in, in.takeRaw(s)
	case fileSource:
		if in.file, in.info.Size, err = s.open(o); err != nil {
			return in, err
		}
		in.meter = newMeter(ctx, in.file, in.name, -1)
	case readerSource:
		if s.r == nil {
			return in, fault(ErrUnsupported, in.name, "the reader is nil")
		}
		in.meter = newMeter(ctx, &interruptible{ctx: ctx, r: s.r}, in.name, o.MaxBytes)
		if peeked, err = in.peek(o, spool); err != nil {
			return in, err
		}
	default:
		return in, fault(ErrUnsupported, in.name, "a source of type %T, expected File, Reader or Raw", src)
	}
	in.container = wavContainer
	if in.file != nil {
		if in.container, err = in.sniff(); err != nil {
			return in, err
		}
		if in.container != wavContainer {
			in.info.Container = in.container.name
			return in, nil
		}
		if in.hashed() {
			in.meter = newMeter(ctx, in.file, in.name, -1)
		}
		peeked = bufio.NewReaderSize(in.meter, sniffWindow)
	}
	return in, in.takeWAV(peeked, o)
}

// takeRaw sets the caller's samples as the input.
func (in *input) takeRaw(s rawSource) error {
	if s.channels < 1 || s.channels > maxChannels || s.rate < minWAVRate || s.rate > maxWAVRate || len(s.samples)%max(1, s.channels) != 0 {
		return fault(ErrUnsupported, in.name, "%d samples at %d Hz in %d channels, expected whole frames, %d to %d Hz, 1 to %d channels", len(s.samples), s.rate, s.channels, minWAVRate, maxWAVRate, maxChannels)
	}
	in.tape = &tape{r: bufio.NewReader(bytes.NewReader(asBytes(s.samples)))}
	in.take(floatHeader("raw", s.rate, s.channels))
	in.header.data = int64(len(s.samples) * in.header.width)
	return nil
}

// take sets the header of the tape.
func (in *input) take(h *wavHeader) {
	in.header = h
	in.info.Container, in.info.Codec, in.info.SampleRate, in.info.Channels = h.container, h.codec, h.rate, h.channels
}

// peek recognizes the beginning of a reader. It returns the reader of a WAV
// file unless spool is set; otherwise it copies the bytes to a temporary file.
func (in *input) peek(o Options, spool bool) (*bufio.Reader, error) {
	peeked := bufio.NewReaderSize(in.meter, sniffWindow)
	head, err := peeked.Peek(sniffWindow)
	atEnd := err == io.EOF //nolint:errorlint // as in meter.Read
	if err != nil && !atEnd {
		return nil, err
	}
	if atEnd {
		if err := o.checkSize(in.name, int64(len(head))); err != nil {
			return nil, err
		}
	}
	c, err := sniffHead(in.name, head)
	if err != nil {
		return nil, err
	}
	if spool || c != wavContainer {
		return nil, in.spool(peeked, nil, o)
	}
	return peeked, nil
}

func (in *input) sniff() (container, error) {
	c, err := sniff(in.file)
	if errors.Is(err, errFarTag) {
		return c, fault(ErrCorrupt, in.name, "it ends inside its ID3 tag")
	}
	if err != nil {
		return c, machineError(in.name, "read", err)
	}
	if c.name == "" {
		head := make([]byte, 16)
		n, _ := readAt(in.file, head, 0)
		return c, unrecognized(in.name, head[:n])
	}
	return c, nil
}

// takeWAV reads the header of a WAV file or one of its variants.
func (in *input) takeWAV(r *bufio.Reader, o Options) error {
	if o.Track > 1 {
		return fault(ErrNoAudio, in.name, "audio track %d is not there: a %s file has one", o.Track, in.container.name)
	}
	in.tape = &tape{r: r, name: in.name}
	h, err := readWAVHeader(in.tape)
	if err != nil {
		return err
	}
	in.take(h)
	if in.header.convert == nil { // compressed: decoded by ffmpeg
		if in.header.container != "wav" {
			return fault(ErrUnsupported, in.name, "%s in a %s file, expected PCM", in.header.codec, in.header.container)
		}
		if in.file == nil {
			if err := in.spool(r, in.tape.kept, o); err != nil {
				return err
			}
		}
		c := dataChunks{r: io.NewSectionReader(in.file, int64(len(in.tape.kept)), math.MaxInt64), order: h.order}
		in.tape, in.info.Truncated = nil, h.data > 0 && c.next(h.data+h.data&1) == nil // ffmpeg reads one data chunk
	}
	return nil
}

// unrecognized returns the error for an unsupported file that begins with head.
func unrecognized(name string, head []byte) error {
	if len(head) == 0 {
		return fault(ErrTooSmall, name, "it is empty")
	}
	if len(head) > 3 && string(head[1:4]) == "ds2" {
		return fault(ErrUnsupported, name, "it is a DS2 dictation, which ffmpeg cannot read: save it as WAV by the program of the recorder")
	}
	return fault(ErrUnsupported, name, "its content is not that of an audio or video file")
}

// spool writes a reader to an unnamed file, after the bytes already read.
func (in *input) spool(r io.Reader, read []byte, o Options) error {
	f, err := tempFile(o.TempDir)
	if err != nil {
		return err
	}
	in.file = f
	if _, err := f.Write(read); err != nil {
		return unwritten(in.name, "its bytes", err)
	}
	n, err := io.Copy(f, onlyReader{r})
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			return unwritten(in.name, "its bytes", err)
		}
		return err
	}
	if err := o.checkSize(in.name, n+int64(len(read))); err != nil {
		return err
	}
	// A file in memory has the length of its limit (tempFile).
	if err := f.Truncate(n + int64(len(read))); err != nil {
		return machineError(in.name, "end", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return machineError(in.name, "rewind", err)
	}
	in.info.Size, in.info.MD5 = in.meter.n, in.meter.hex()
	return nil
}

// onlyReader keeps io.Copy from bypassing the meter.
type onlyReader struct{ io.Reader }

// decode converts the input to samples and completes its Info.
func (in *input) decode(ctx context.Context, o Options, rec *recorder) error {
	if in.tape != nil {
		return in.decodeWAV(ctx, o, rec)
	}
	sum := make(chan error, 1)
	hashCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in.hashed() {
		sum <- nil
	} else {
		go func() { // runs in parallel with the decoder, from the same pages of the cache
			m := newMeter(hashCtx, io.NewSectionReader(in.file, 0, in.info.Size), in.name, -1)
			_, err := io.CopyBuffer(io.Discard, onlyReader{m}, make([]byte, 1<<18))
			in.info.MD5 = m.hex()
			sum <- err
		}()
	}
	rep, h, err := in.decodeFFmpeg(ctx, o, rec, 0)
	if err != nil {
		cancel()
	}
	if err = cmp.Or(err, <-sum); err != nil {
		return err
	}
	in.describe(rep, h)
	in.timeline, in.info.BadTimes = rep.stamps.timeline(), rep.stamps.dropped
	in.info.Truncated = in.info.Truncated || rep.incomplete(in, o, rep.stamps.end(rec.seconds()))
	return in.checkEnd(rec.count)
}

func (in *input) decodeWAV(ctx context.Context, o Options, rec *recorder) error {
	h := in.header
	if n, _ := in.samplesAhead(); n >= 0 {
		if err := o.checkDuration(in.name, h.seconds(n)); err != nil {
			return err
		}
	}
	var err error
	if in.info.Truncated, err = decodeWAV(ctx, in.tape.r, h, rec); err != nil {
		return err
	}
	// Bytes after the samples count and are hashed as well.
	if _, err := io.Copy(io.Discard, onlyReader{in.tape.r}); err != nil {
		return err
	}
	if in.hashed() || in.meter == nil {
		return nil
	}
	in.info.Size, in.info.MD5 = in.meter.n, in.meter.hex()
	return o.checkSize(in.name, in.info.Size)
}

// samplesAhead returns the number of bytes of samples left on the tape, in
// whole frames by the headers and the file's size, or -1 if only the end of the
// stream shows it. cut reports that the headers declare more.
func (in *input) samplesAhead() (n int64, cut bool) {
	h := in.header
	if in.file == nil {
		return h.data, false
	}
	begin, align := int64(len(in.tape.kept)), int64(h.align)
	var err error
	var size int64 // of the samples that are there
	r := io.NewSectionReader(in.file, begin, in.info.Size-begin)
	c := dataChunks{r: r, order: h.order, size: h.data}
	for ; err == nil; err = c.next(size + size&1) {
		at, _ := r.Seek(0, io.SeekCurrent)
		there := r.Size() - at
		cut = c.size/align > there/align
		size = int64(min(uint64(c.size), uint64(there))) // untilEOF is the largest value
		n += size - size%align
	}
	return n, cut || c.lost(err)
}

// checkEnd marks a file as truncated if it ends before the end that its
// structure declares, or has fewer samples (of one channel) than declared;
// decoded may be 0.
func (in *input) checkEnd(decoded int64) error {
	cut, err := cutShort(in.file, in.info.Size, in.container)
	if err == nil && in.container.name == "flac" && decoded > 0 {
		var declared flacHeader
		declared, err = readFLACHeader(in.file)
		cut = cut || decoded < declared.samples
	}
	if err != nil {
		return machineError(in.name, "read", err)
	}
	in.info.Truncated = in.info.Truncated || cut
	return nil
}

// describe copies ffmpeg's description of the tracks.
func (in *input) describe(rep *report, h *wavHeader) {
	in.info.SampleRate, in.info.Channels = h.rate, h.channels
	in.info.Codec, in.info.Tracks = rep.codec(), rep.unchosen()
}
