package audio

import "os"

// recorder writes interleaved samples of any rate as mono samples at SampleRate
// to an unnamed file. With a nil file it only counts.
type recorder struct {
	name         string
	limit        int64 // largest number of samples in the result, or -1 if unlimited
	file         *os.File
	count        int64 // frames of the input
	samples      int64 // samples of the result
	rate         int
	nonFinite    int64    // input samples that were NaN or infinite
	mix          *downmix // nil for one channel
	res          *Resampler
	out, pending []float32
	apart        *channels // nil if only the mix is requested
}

const recorderBuffer = 1 << 16 // samples

func (r *recorder) begin(rate, channels int) error {
	r.rate = rate
	if r.file == nil {
		return nil
	}
	var err error
	if r.res, err = NewResampler(rate, SampleRate); err != nil {
		return err
	}
	if channels > 1 {
		r.mix = newDownmix(channels, rate, r.mono)
	}
	r.pending = make([]float32, 0, recorderBuffer)
	if r.apart != nil {
		return r.apart.begin(r.name, rate, channels)
	}
	return nil
}

// write writes interleaved samples, whole frames only.
func (r *recorder) write(samples []float32, channels int) error {
	r.count += int64(len(samples) / channels)
	if r.limit >= 0 && r.count > r.limit*int64(r.rate)/SampleRate+int64(r.rate)/10 {
		return fault(ErrTooLong, r.name, "it lasts longer, expected at most %g s", float64(r.limit)/SampleRate)
	}
	if r.apart != nil {
		if err := r.apart.write(samples); err != nil {
			return err
		}
	}
	switch {
	case r.file == nil:
		return nil
	case r.mix != nil:
		return r.mix.write(samples)
	}
	return r.mono(samples)
}

func (r *recorder) mono(samples []float32) error {
	r.out = r.res.Process(r.out[:0], samples)
	return r.keep(r.out)
}

func (r *recorder) keep(samples []float32) error {
	r.samples += int64(len(samples))
	for len(samples) > 0 {
		n := min(len(samples), cap(r.pending)-len(r.pending))
		at := len(r.pending)
		r.pending = r.pending[:at+n]
		fromF32(r.pending[at:], asBytes(samples[:n]))
		samples = samples[n:]
		if len(r.pending) == cap(r.pending) {
			if err := r.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recorder) spill() error {
	if len(r.pending) == 0 {
		return nil
	}
	if _, err := r.file.Write(asBytes(r.pending)); err != nil {
		return unwritten(r.name, "its samples", err)
	}
	r.pending = r.pending[:0]
	return nil
}

// end writes the samples that are still buffered.
func (r *recorder) end() error {
	if r.file == nil {
		return nil
	}
	if r.mix != nil {
		if err := r.mix.flush(); err != nil {
			return err
		}
	}
	r.out = r.res.Flush(r.out[:0])
	if err := r.keep(r.out); err != nil {
		return err
	}
	if r.apart != nil {
		for _, channel := range r.apart.each {
			if err := channel.end(); err != nil {
				return err
			}
		}
	}
	return r.spill()
}

// seconds returns the length of the input.
func (r *recorder) seconds() float64 {
	if r.rate == 0 {
		return 0
	}
	return float64(r.count) / float64(r.rate)
}
