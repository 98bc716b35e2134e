package audio

import (
	"fmt"
	"slices"
)

// Feed converts samples that arrive piece by piece to mono float32 at
// SampleRate, however the bytes are split. It is not for concurrent use.
type Feed struct {
	width    int // bytes of a sample
	convert  convert
	channels int
	res      *Resampler
	rest     []byte // an incomplete frame
	x, mono  []float32
}

// The lowest and highest rates that NewFeed takes, in Hz.
const (
	leastFeedRate = 4000
	mostFeedRate  = 192000
)

// feedEncodings are the encodings that NewFeed takes.
var feedEncodings = map[string]wavEncoding{"s16le": {tagPCM, 2}, "f32le": {tagFloat, 4}, "mulaw": {tagMuLaw, 1}, "alaw": {tagALaw, 1}}

// NewFeed returns a converter of interleaved samples at a rate of 4 to 192 kHz,
// in the encoding s16le, f32le, mulaw or alaw. Channels are averaged.
func NewFeed(encoding string, rate, channels int) (*Feed, error) {
	e, ok := feedEncodings[encoding]
	if !ok {
		return nil, fmt.Errorf("audio: encoding %q: expected one of [s16le f32le mulaw alaw]", encoding)
	}
	f := &Feed{channels: channels, width: e.width, convert: wavSamples[e].convert}
	if rate < leastFeedRate || rate > mostFeedRate {
		return nil, fmt.Errorf("audio: sample rate %d Hz: expected %d to %d Hz", rate, leastFeedRate, mostFeedRate)
	}
	if channels < 1 || channels > maxChannels {
		return nil, fmt.Errorf("audio: %d channels: expected 1 to %d", channels, maxChannels)
	}
	var err error
	f.res, err = NewResampler(rate, SampleRate)
	return f, err
}

// Convert appends the samples of further bytes to dst. The last milliseconds
// stay in the resampler until more bytes come.
func (f *Feed) Convert(dst []float32, data []byte) []float32 {
	frame := f.width * f.channels
	if len(f.rest) > 0 {
		data = append(f.rest, data...)
	}
	n := len(data) / frame
	f.x = slices.Grow(f.x[:0], n*f.channels)[:n*f.channels]
	f.convert(f.x, data[:n*frame])
	f.rest = slices.Clone(data[n*frame:])
	mono := f.x
	if f.channels > 1 {
		f.mono = slices.Grow(f.mono[:0], n)[:n]
		for i := range f.mono {
			sum := float32(0)
			for _, v := range f.x[i*f.channels : (i+1)*f.channels] {
				sum += v
			}
			f.mono[i] = sum / float32(f.channels)
		}
		mono = f.mono
	}
	return f.res.Process(dst, mono)
}

// Flush appends the samples that are still in the resampler and ends the feed.
func (f *Feed) Flush(dst []float32) []float32 { return f.res.Flush(dst) }
