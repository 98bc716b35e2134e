package audio

import (
	"context"
	"io"
)

// Probe describes a recording. It does not decode it if the container declares
// the length or the frames are numbered, as in FLAC, which needs no decoder. If
// the length is missing, estimated from a bit rate, or too long for the file, the
// recording is decoded and counted at the decoder's speed, without keeping
// samples. A declared length may be wrong; Open counts. MD5 is set only if all
// bytes had to be read anyway (a Reader). Limits and errors are the same as Open's.
func Probe(ctx context.Context, src Source, o Options) (Info, error) {
	o = o.withDefaults()
	if err := context.Cause(ctx); err != nil {
		return Info{}, err
	}
	in, err := receive(ctx, src, o, true)
	if err != nil {
		return Info{}, err
	}
	defer in.close()
	if in.tape != nil {
		ahead, cut := in.samplesAhead()
		in.info.Duration, in.info.Truncated = in.header.seconds(ahead), cut
	} else if err := in.probeChild(ctx, o); err != nil {
		return Info{}, err
	}
	if in.info.Duration == 0 {
		return Info{}, fault(ErrNoAudio, in.name, "it contains no samples")
	}
	if err := o.checkDuration(in.name, in.info.Duration); err != nil {
		return Info{}, err
	}
	return in.info, nil
}

func (in *input) probeChild(ctx context.Context, o Options) error {
	if in.container.name == "flac" && o.Track <= 1 { // its header needs no process
		flac, err := readFLACHeader(in.file)
		if err != nil {
			return machineError(in.name, "read", err)
		}
		if seconds := float64(flac.samples) / float64(max(flac.rate, 1)); flac.rate > 0 && flac.framed && seconds > 0 && in.believes(seconds, o) {
			in.info.Duration, in.info.SampleRate, in.info.Channels, in.info.Codec = seconds, flac.rate, flac.channels, "flac"
			return nil
		}
	}
	count := &recorder{name: in.name, limit: o.maxSamples()}
	rep, h, err := in.decodeFFmpeg(ctx, o, count, 0.1)
	if err != nil {
		return err
	}
	in.describe(rep, h)
	in.info.Duration = rep.declared(in.container)
	if in.container.name == "ogg" {
		chained, err := chainedOgg(in.file, in.info.Size)
		if err != nil {
			return machineError(in.name, "read", err)
		}
		if chained { // ffmpeg reports only the length of the last stream
			in.info.Duration = 0
		}
	}
	if in.info.Duration > 0 && in.believes(in.info.Duration, o) {
		return in.checkEnd(0)
	}
	count = &recorder{name: in.name, limit: o.maxSamples()}
	if rep, _, err = in.decodeFFmpeg(ctx, o, count, 0); err != nil {
		return err
	}
	in.info.Duration = count.seconds()
	in.info.Truncated = in.info.Truncated || rep.incomplete(in, o, rep.stamps.end(count.seconds()))
	return in.checkEnd(count.count)
}

// chainedOgg reports whether a second logical stream begins after the pages of
// the first one (RFC 3533, section 4). It reads only page headers.
func chainedOgg(f io.ReaderAt, size int64) (bool, error) {
	var page [27 + 255]byte
	begun := false // seen a page that does not begin a stream
	for at := int64(0); at < size; {
		n, err := readAt(f, page[:], at)
		length, flags := oggPage(page[:n])
		if err != nil || length == 0 {
			return false, err // a damaged page or the end: use ffmpeg's report
		}
		if flags&oggFirst == 0 {
			begun = true
		} else if begun {
			return true, nil
		}
		at += int64(length)
	}
	return false, nil
}
