package audio

// maxKept is the largest number of channels kept separately: a recorder's eight
// tracks. Each takes as much disk space as the mix.
const maxKept = 8

// channels records each channel to a separate file, in addition to the mix.
type channels struct {
	dir  string
	each []*recorder
	one  []float32 // the samples of one channel
}

// begin prepares for n channels; one, or more than maxKept, are not kept.
func (c *channels) begin(name string, rate, n int) error {
	c.close() // files of another track than the wanted one
	if n < 2 || n > maxKept {
		return nil
	}
	for range n {
		file, err := tempFile(c.dir)
		if err != nil {
			return err
		}
		r := &recorder{name: name, limit: -1, file: file}
		c.each = append(c.each, r)
		if err := r.begin(rate, 1); err != nil {
			return err
		}
	}
	return nil
}

// write takes interleaved samples, whole frames only.
func (c *channels) write(samples []float32) error {
	n := len(c.each)
	for i, r := range c.each {
		c.one = c.one[:0]
		for at := i; at < len(samples); at += n {
			c.one = append(c.one, samples[at])
		}
		if err := r.write(c.one, 1); err != nil {
			return err
		}
	}
	return nil
}

// pcm maps the recorded channels of a recording and returns one PCM for each.
func (c *channels) pcm(mix *PCM) (list []*PCM, err error) {
	for _, r := range c.each {
		p := &PCM{info: mix.info, timeline: mix.timeline}
		if p.mapped, p.samples, err = mapSamples(r.file, int(r.samples)); err != nil {
			return list, err
		}
		p.info.Channels, p.info.Duration = 1, p.Duration()
		list = append(list, p)
	}
	return list, nil
}

func (c *channels) close() {
	for _, r := range c.each {
		r.file.Close()
	}
	c.each = nil
}

// Channels returns each channel of the recording as a separate recording, in
// order, valid until Close. It is empty unless Options.KeepChannels is set and
// the recording has 2 to 8 channels.
func (p *PCM) Channels() []*PCM { return p.channels }
