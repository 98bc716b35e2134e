package audio

import (
	"os"
	"sync"
)

// Sound has samples at fixed positions: a PCM, or a Tape that still grows.
type Sound interface {
	// Samples returns the samples [from, to), both clamped to the sound's
	// range. The caller must not change them.
	Samples(from, to int) []float32
	// Len returns the position after the last sample.
	Len() int
}

// blockSamples is the length of a Tape's blocks.
const blockSamples = SampleRate

// Tape is a sound that only grows, at its end, and forgets its beginning. The
// positions of its samples never change. It is safe for concurrent use.
type Tape struct {
	mu         sync.Mutex
	blocks     [][]float32 // the first begins at position first; each but the last has blockSamples
	first, end int
}

// Append adds samples (mono at SampleRate), through the same limits as Open:
// each sample becomes finite and within [-1, 1].
func (t *Tape) Append(samples []float32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(samples) > 0 {
		last := len(t.blocks) - 1
		if last < 0 || len(t.blocks[last]) == blockSamples {
			t.blocks = append(t.blocks, make([]float32, 0, blockSamples))
			last++
		}
		b := t.blocks[last]
		n := min(len(samples), blockSamples-len(b))
		t.blocks[last] = b[:len(b)+n]
		fromF32(t.blocks[last][len(b):], asBytes(samples[:n]))
		samples = samples[n:]
		t.end += n
	}
}

// Len implements Sound.
func (t *Tape) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}

// Forget frees samples before a position, at most a second later.
func (t *Tape) Forget(before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(max(before-t.first, 0)/blockSamples, max(len(t.blocks)-1, 0))
	clear(t.blocks[:n])
	t.blocks = t.blocks[n:]
	t.first += n * blockSamples
}

// Samples implements Sound; it returns a copy.
func (t *Tape) Samples(from, to int) []float32 { return t.Section(from, to).samples }

// Section returns a recording that ends at position to and has only the samples
// from position from on, each at its own position.
func (t *Tape) Section(from, to int) *PCM {
	t.mu.Lock()
	defer t.mu.Unlock()
	from = min(max(from, t.first), t.end)
	first := from
	to = min(max(to, from), t.end)
	out := make([]float32, 0, to-from)
	for from < to {
		b := t.blocks[(from-t.first)/blockSamples][(from-t.first)%blockSamples:]
		n := min(len(b), to-from)
		out = append(out, b[:n]...)
		from += n
	}
	p := FromSamples(out)
	p.first = first
	p.info.Duration = p.Duration()
	return p
}

// Recorder stores mono samples at SampleRate in an unnamed file, as Open does.
// It is not safe for concurrent use.
type Recorder struct {
	file *os.File
	rec  recorder
}

// NewRecorder returns a recorder with a file in dir, "" for the system's.
func NewRecorder(dir string) (*Recorder, error) {
	f, err := tempFile(dir)
	if err != nil {
		return nil, err
	}
	r := &Recorder{file: f, rec: recorder{name: "the live recording", limit: -1, file: f}}
	return r, r.rec.begin(SampleRate, 1)
}

// Write stores further samples.
func (r *Recorder) Write(samples []float32) error { return r.rec.write(samples, 1) }

// PCM ends the recording and returns it.
func (r *Recorder) PCM() (*PCM, error) {
	defer r.Close()
	if err := r.rec.end(); err != nil {
		return nil, err
	}
	p := FromSamples(nil)
	var err error
	if p.mapped, p.samples, err = mapSamples(r.file, int(r.rec.samples)); err != nil {
		return nil, err
	}
	p.info.Duration = p.Duration()
	return p, nil
}

// Close frees the file; a recording that PCM returned stays valid.
func (r *Recorder) Close() error { return r.file.Close() }
