package audio

import (
	"cmp"
	"os"
	"time"

	"github.com/otograph/otograph/spec"
)

const defaultMaxDecodeTime = 15 * time.Minute

// Options configures the accepted recordings. The zero value sets the limits of
// the specification: 1 KB to 2 GB, up to 5 hours. A negative value is no limit.
type Options struct {
	MinBytes      int64         // smallest file; default 1 KiB
	MaxBytes      int64         // largest file; default 2 GiB
	MaxSeconds    float64       // longest recording in seconds; default 5 h; counted while decoding, regardless of the header
	MaxDecodeTime time.Duration // wall-clock limit for one ffmpeg process; default 15 min
	TempDir       string        // folder for unnamed files with samples; default os.TempDir; if it is missing or read-only, 512 MiB each in memory (Linux)
	FFmpeg        string        // path of ffmpeg; default: found in PATH; ffprobe is first looked for in the same folder
	// Audio track to decode, counted from 1; 0 or less selects the default or
	// first one. If it does not exist, the error is ErrNoAudio.
	Track int
	// Make PCM.Channels return each of 2 to 8 channels; each takes as much disk
	// space as the mix.
	KeepChannels bool
}

func (o Options) withDefaults() Options {
	pick := func(v *int64, d int64) { *v = max(cmp.Or(*v, d), -1) }
	pick(&o.MinBytes, spec.MinAudioBytes)
	pick(&o.MaxBytes, spec.MaxAudioBytes)
	o.MaxSeconds = cmp.Or(o.MaxSeconds, spec.MaxAudioSeconds)
	pick((*int64)(&o.MaxDecodeTime), int64(defaultMaxDecodeTime))
	o.TempDir = cmp.Or(o.TempDir, os.TempDir())
	return o
}

// maxSamples returns the largest number of samples, or -1 if unlimited.
func (o Options) maxSamples() int64 {
	if o.MaxSeconds < 0 {
		return -1
	}
	return int64(o.MaxSeconds * SampleRate)
}

// checkSize checks the size of a source against the limits.
func (o Options) checkSize(name string, size int64) error {
	if size < o.MinBytes {
		return fault(ErrTooSmall, name, "it has %d bytes, expected at least %d", size, o.MinBytes)
	}
	if o.MaxBytes >= 0 && size > o.MaxBytes {
		return fault(ErrTooLarge, name, "it has %d bytes, expected at most %d", size, o.MaxBytes)
	}
	return nil
}

// checkDuration checks a declared length in seconds against the limit.
func (o Options) checkDuration(name string, seconds float64) error {
	if o.MaxSeconds >= 0 && seconds > o.MaxSeconds {
		return fault(ErrTooLong, name, "it lasts %.1f s, expected at most %g s", seconds, o.MaxSeconds)
	}
	return nil
}
