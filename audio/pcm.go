package audio

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// SampleRate is the rate (Hz) of every PCM here, at which models are trained.
const SampleRate = 16000

// trimEvery is the number of bytes returned in views before the mapping's pages
// are released to the kernel; it bounds the resident set.
const trimEvery = 32 << 20

// Span is a half-open range [Start, End) of samples at SampleRate.
type Span struct{ Start, End int }

// Len returns the number of samples in the span.
func (s Span) Len() int { return s.End - s.Start }

// Seconds returns both ends in seconds from the beginning of the recording.
func (s Span) Seconds() (start, end float64) {
	return float64(s.Start) / SampleRate, float64(s.End) / SampleRate
}

// Info describes a recording and, after Open, the findings of its decoding.
type Info struct {
	// Seconds of audio: counted after Open; after Probe, the length that the
	// container declares, or counted if it declares none.
	Duration   float64
	Container  string // "wav", "mp3", "ogg", "mp4", …; "raw" for samples passed by the caller
	Codec      string // codec name as in ffmpeg: "pcm_s16le", "mp3", "opus", …
	SampleRate int    // Hz, of the original
	Channels   int    // of the original
	Size       int64  // bytes, of the original; 0 for raw samples
	MD5        string // hex MD5 of the original bytes; empty for raw samples and if not all bytes were read (Probe)
	NonFinite  int64  // NaN and infinite samples replaced by 0
	Truncated  bool   // part of the recording is missing or unreadable; the rest was decoded
	BadTimes   bool   // time stamps claim gaps of more than five hours, which are not in the Timeline

	// Tracks describes the audio tracks of a file with several tracks if
	// Options.Track chose none: the decoded one, then the others, as "2
	// (vorbis) ger" with the number, the codec and the language if the file
	// declares it.
	Tracks []string
}

// PCM is a decoded recording: mono float32 at SampleRate. If it comes from
// Open, every sample is finite and within [-1, 1]. Its samples are in an
// unnamed memory-mapped file, so they use page cache instead of memory and
// vanish with the process. It is safe for concurrent use. Call Close after the
// last use of a view.
type PCM struct {
	samples  []float32
	first    int // position of the first sample; earlier ones are no longer there (Tape.Section)
	info     Info
	timeline Timeline
	mapped   []byte // nil if samples is an ordinary slice
	handed   atomic.Int64
	closing  sync.Once
	closed   error

	channels []*PCM // one per channel; empty unless they were kept

	leveled *leveled // set if Leveled made this recording, else nil
}

// FromSamples wraps mono samples at SampleRate without copying them.
func FromSamples(samples []float32) *PCM {
	return &PCM{samples: samples, info: Info{
		Duration: float64(len(samples)) / SampleRate, Container: "raw", Codec: "pcm_f32le", SampleRate: SampleRate, Channels: 1,
	}}
}

// Len returns the number of samples, with the samples that a Tape has dropped.
func (p *PCM) Len() int { return p.first + len(p.samples) }

// Duration returns the length in seconds.
func (p *PCM) Duration() float64 { return float64(p.Len()) / SampleRate }

// Timeline returns the times of the samples in the recording.
func (p *PCM) Timeline() Timeline { return p.timeline }

// Info returns the description of the recording.
func (p *PCM) Info() Info { return p.info }

// Samples returns a read-only view of the samples [from, to), both clamped to
// [0, Len]; it is valid until Close. Writing to it faults. To keep memory flat,
// read a long recording in windows. For a Leveled recording it returns a copy.
func (p *PCM) Samples(from, to int) []float32 {
	if p.leveled != nil {
		return p.Append(nil, from, to)
	}
	from, to = p.within(from, to)
	if p.mapped != nil && p.handed.Add(int64(to-from)*4) >= trimEvery {
		p.handed.Store(0)
		releasePages(p.mapped)
	}
	return p.samples[from-p.first : to-p.first : to-p.first]
}

// Append appends the samples [from, to), both clamped to [0, Len], to dst.
func (p *PCM) Append(dst []float32, from, to int) []float32 {
	if p.leveled == nil {
		return append(dst, p.Samples(from, to)...)
	}
	from, to = p.within(from, to)
	return p.leveled.append(slices.Grow(dst, to-from), from, to)
}

// within clamps a range to the recording.
func (p *PCM) within(from, to int) (int, int) {
	from = min(max(from, p.first), p.Len())
	return from, min(max(to, from), p.Len())
}

// Close releases the samples and their views. It may be called more than once.
func (p *PCM) Close() error {
	p.closing.Do(func() {
		p.samples = nil
		if p.mapped != nil {
			p.closed = unmap(p.mapped)
			p.mapped = nil
		}
		for _, c := range p.channels {
			p.closed = errors.Join(p.closed, c.Close())
		}
	})
	return p.closed
}

// clamp limits a sample to [-1, 1]; NaN becomes 0.
func clamp(x float32) float32 {
	switch {
	case x > 1:
		return 1
	case x < -1:
		return -1
	case x != x || math.Abs(float64(x)) < 1e-20: // denormals would slow down every later stage
		return 0
	}
	return x
}
