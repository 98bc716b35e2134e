package tag

import "github.com/otograph/otograph/audio"

// reader returns windows of a recording at the network's sample rate, in order.
// It only holds the overlap of two neighboring windows and one step.
type reader struct {
	pcm   *audio.PCM
	total int // samples of the recording at the network's rate

	resampler *audio.Resampler // nil at the rate of the recording
	buf       []float32        // resampled samples that are still needed
	start     int              // sample of buf[0] at that rate
	read      int              // samples of pcm passed to the resampler
}

// step is the number of samples resampled in one call.
const step = audio.SampleRate

func newReader(pcm *audio.PCM, rate int) (*reader, error) {
	r := &reader{pcm: pcm, total: pcm.Len()}
	if rate != audio.SampleRate {
		var err error
		if r.resampler, err = audio.NewResampler(audio.SampleRate, rate); err != nil {
			return nil, err
		}
		r.total = int((int64(pcm.Len())*int64(rate) + audio.SampleRate - 1) / audio.SampleRate)
	}
	return r, nil
}

// window fills dst with the samples from start, and with zeros after the end.
// start must not decrease from call to call.
func (r *reader) window(dst []float32, start int) {
	if r.resampler == nil {
		n := copy(dst, r.pcm.Samples(start, start+len(dst)))
		clear(dst[n:])
		return
	}
	for r.drop(start); r.start+len(r.buf) < min(start+len(dst), r.total); r.drop(start) {
		if r.read >= r.pcm.Len() {
			r.buf = r.resampler.Flush(r.buf)
			break
		}
		r.buf = r.resampler.Process(r.buf, r.pcm.Samples(r.read, r.read+step))
		r.read = min(r.read+step, r.pcm.Len())
	}
	n := 0
	if from := start - r.start; from < len(r.buf) {
		n = copy(dst, r.buf[from:])
	}
	clear(dst[n:])
}

// drop drops the samples before start.
func (r *reader) drop(start int) {
	if n := min(start-r.start, len(r.buf)); n > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[n:])]
		r.start += n
	}
}
