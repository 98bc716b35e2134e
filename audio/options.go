package audio

import (
	"os"
	"time"
)

// The limits of the specification, in force when an option is zero.
const (
	DefaultMinBytes      = 1 << 10
	DefaultMaxBytes      = 2 << 30
	DefaultMaxDuration   = 5 * time.Hour
	DefaultMaxDecodeTime = 15 * time.Minute
)

// Options bounds what is accepted. The zero value is the specification: 1 KB to 2 GB, up to 5 hours.
// A negative limit switches that limit off.
type Options struct {
	MinBytes      int64         // smallest file; default 1 KiB
	MaxBytes      int64         // largest file; default 2 GiB
	MaxDuration   time.Duration // longest recording; default 5 h. It is counted while decoding, whatever the header says.
	MaxDecodeTime time.Duration // wall clock that one ffmpeg child may take; default 15 min
	TempDir       string        // where unnamed files with samples live; default os.TempDir
	FFmpeg        string        // path of ffmpeg; default: the one in PATH. ffprobe is looked for beside it first.
	FollowLinks   bool          // let File follow a symbolic link in the last part of its path; refused by default, as in a watched folder
	KeepChannels  bool          // let PCM.Channels have the channels of recordings with 2 to 8, which take as much disk each as the mix
}

func (o Options) withDefaults() Options {
	pick := func(v *int64, d int64) {
		switch {
		case *v == 0:
			*v = d
		case *v < 0:
			*v = -1
		}
	}
	pick(&o.MinBytes, DefaultMinBytes)
	pick(&o.MaxBytes, DefaultMaxBytes)
	pick((*int64)(&o.MaxDuration), int64(DefaultMaxDuration))
	pick((*int64)(&o.MaxDecodeTime), int64(DefaultMaxDecodeTime))
	if o.TempDir == "" {
		o.TempDir = os.TempDir()
	}
	return o
}

// maxSamples is the longest result in samples at SampleRate, -1 without limit.
func (o Options) maxSamples() int64 {
	if o.MaxDuration < 0 {
		return -1
	}
	return int64(o.MaxDuration.Seconds() * SampleRate)
}

// checkSize compares the size of a source with the limits.
func (o Options) checkSize(name string, size int64) error {
	if size < o.MinBytes {
		return fault(ErrTooSmall, name, "it has %d bytes, expected at least %d", size, o.MinBytes)
	}
	if o.MaxBytes >= 0 && size > o.MaxBytes {
		return fault(ErrTooLarge, name, "it has %d bytes, expected at most %d", size, o.MaxBytes)
	}
	return nil
}

// checkDuration compares a length in seconds, as the container says it, with the limit.
func (o Options) checkDuration(name string, seconds float64) error {
	if o.MaxDuration >= 0 && seconds > o.MaxDuration.Seconds() {
		return fault(ErrTooLong, name, "it lasts %.1f s, expected at most %g s", seconds, o.MaxDuration.Seconds())
	}
	return nil
}
