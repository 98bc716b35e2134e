package dsp

// Extractor computes the features of one recipe: rows of band values.
type Extractor struct {
	*analyzer
	frames func(samples int) int
	finish func(rows []float32) // changes the rows of all frames; nil for none
}

func newExtractor(a *analyzer, fft int, frames func(samples int) int) *Extractor {
	a.init(fft)
	return &Extractor{analyzer: a, frames: frames}
}

// inside counts the frames that lie inside the signal.
func inside(window int) func(samples int) int {
	return func(n int) int {
		if n < window {
			return 0
		}
		return (n-window)/frameShift + 1
	}
}

// centered counts the frames around the beginning of every shift.
func centered(n int) int { return n/frameShift + 1 }

// Bands returns the number of values per frame.
func (e *Extractor) Bands() int { return len(e.bands) }

// Frames returns the number of frames of n samples.
func (e *Extractor) Frames(n int) int { return e.frames(n) }

// Compute writes Frames(len(samples)) rows of Bands values to dst and returns
// the number of frames. It panics if dst is shorter.
func (e *Extractor) Compute(dst, samples []float32) int {
	n := e.frames(len(samples))
	e.compute(dst, samples, n)
	if e.finish != nil {
		e.finish(dst[:n*e.Bands()])
	}
	return n
}
