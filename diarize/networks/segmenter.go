package networks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// segmenterWindows bounds the windows per call: the layers need 8 MB for each.
const segmenterWindows = 2

// The values of pyannote/segmentation-3.0, for files without metadata.
const (
	defaultWindow   = 10 * audio.SampleRate
	defaultField    = 991 // samples
	defaultShift    = 270 // samples
	defaultSpeakers = 3
	defaultAtOnce   = 2
)

// activeAt is the probability from which a speaker is active in networks whose
// outputs are speakers, not powerset classes (pyannote's pipeline default).
const activeAt = 0.5

// Segmenter is an open speaker segmentation network (Bredin and Laurent 2021;
// Plaquet and Bredin 2023, powerset classes). It is safe for concurrent use.
type Segmenter struct {
	session       *ort.Session
	input, output string
	window        int     // samples
	field, shift  int     // of a frame, in samples
	classes       []uint8 // set of speakers per class; nil if the outputs are speakers
	width         int     // outputs per frame
	threads       int
	buffers       sync.Pool // of *[]float32, the samples of a batch
}

var _ diarize.Segmenter = (*Segmenter)(nil)

// OpenSegmenter opens a segmentation network, as returned by library.OpenFile
// and library.OpenDir: waveform [N,1,samples] at 16 kHz → [N,frames,classes],
// log-probabilities of the powerset classes (no one, each speaker, each pair …)
// or probabilities of the speakers. Errors name the file, its role, the
// expected and the actual value.
func OpenSegmenter(model *models.Model, opt Options) (*Segmenter, error) {
	src, err := ort.SourceOf(model, model.Main())
	if err != nil {
		return nil, err
	}
	return openSegmenter(src, opt)
}

// openSegmenter opens a network from a file or from memory.
func openSegmenter(src ort.Source, opt Options) (*Segmenter, error) {
	graph, err := ort.Inspect(src)
	if err != nil {
		return nil, err
	}
	m, err := readSegmenter(graph)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	m.threads = max(opt.Threads, 1)
	m.buffers.New = func() any { return new(make([]float32, segmenterWindows*m.window)) }
	if m.session, err = ort.Open(src, ort.Options{Outputs: []string{m.output}}); err != nil {
		return nil, err
	}
	// Detects a network that cannot take its own contract's input.
	if _, err := m.run(context.Background(), make([]float32, m.window), 1); err != nil {
		return nil, errors.Join(err, m.session.Close())
	}
	return m, nil
}

// readSegmenter finds a graph's inputs and the meaning of its outputs.
func readSegmenter(g *ort.Graph) (*Segmenter, error) {
	wrong := func(what string) error {
		return fmt.Errorf("%w: expected a speaker segmentation network, one input [N,1,samples] and one output [N,frames,classes]%s; found %s", ort.ErrContract, what, g.IOList())
	}
	if len(g.Inputs) != 1 || len(g.Outputs) == 0 {
		return nil, wrong("")
	}
	in, out := g.Inputs[0], g.Outputs[0]
	if in.Type != ort.Float32 || out.Type != ort.Float32 || in.Rank() != 3 || in.Shape[1] > 1 || out.Rank() != 3 {
		return nil, wrong("")
	}
	m := &Segmenter{input: in.Name, output: out.Name}
	numbers := map[string]*int{"window_size": &m.window, "receptive_field_size": &m.field, "receptive_field_shift": &m.shift}
	m.window, m.field, m.shift = defaultWindow, defaultField, defaultShift
	if fixed := in.Shape[2]; fixed > 0 {
		m.window = int(fixed)
	}
	for key, into := range numbers {
		if err := number(g, key, into); err != nil {
			return nil, err
		}
	}
	rate, speakers, atOnce, width := audio.SampleRate, defaultSpeakers, defaultAtOnce, int(out.Shape[2])
	for key, into := range map[string]*int{"sample_rate": &rate, "num_speakers": &speakers, "powerset_max_classes": &atOnce, "num_classes": &width} {
		if err := number(g, key, into); err != nil {
			return nil, err
		}
	}
	switch {
	case rate != audio.SampleRate:
		return nil, fmt.Errorf("%w: expected a sample rate of %d, found %d", ort.ErrContract, audio.SampleRate, rate)
	case speakers > 8:
		return nil, fmt.Errorf("%w: expected at most 8 speakers in a window, found %d", ort.ErrContract, speakers)
	case m.window < audio.SampleRate || m.window > 60*audio.SampleRate:
		return nil, fmt.Errorf("%w: expected windows of 1 to 60 s, found %d samples", ort.ErrContract, m.window)
	}
	m.classes = powerset(speakers, atOnce)
	if width < 0 {
		width = len(m.classes)
	}
	m.width = width
	switch width {
	case len(m.classes):
	case speakers:
		m.classes = nil
	default:
		return nil, wrong(fmt.Sprintf(" with %d powerset classes of %d speakers, %d at once, or %d speakers", len(m.classes), speakers, atOnce, speakers))
	}
	return m, nil
}

// number reads a positive whole number from the metadata, if it is present.
func number(g *ort.Graph, key string, into *int) error {
	text, ok := g.Metadata[key]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 || n > math.MaxInt32 {
		return fmt.Errorf("%w: metadata %s: expected a positive whole number, found %q", ort.ErrContract, key, text)
	}
	*into = n
	return nil
}

// powerset lists the sets of at most atOnce speakers in pyannote's order: by
// size, then by the speakers' numbers.
func powerset(speakers, atOnce int) []uint8 {
	var sets []uint8
	for size := 0; size <= min(atOnce, speakers); size++ {
		sets = appendSets(sets, 0, 0, size, speakers)
	}
	return sets
}

func appendSets(sets []uint8, set uint8, from, size, speakers int) []uint8 {
	if size == 0 {
		return append(sets, set)
	}
	for s := from; s <= speakers-size; s++ {
		sets = appendSets(sets, set|1<<s, s+1, size-1, speakers)
	}
	return sets
}

// Window returns the length of a window in samples.
func (m *Segmenter) Window() int { return m.window }

// Close frees the network after calls in progress; it may be repeated.
func (m *Segmenter) Close() error { return m.session.Close() }

// Segment implements diarize.Segmenter. A window shorter than Window is
// repeated to fill the network's input; its frames end with the window. Padding
// with silence would distort networks that normalize over the window: with
// padding, demo-segmenter takes most of one voice for two.
func (m *Segmenter) Segment(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([]diarize.Activity, error) {
	for i, w := range windows {
		if w.Start < 0 || w.End > pcm.Len() || w.Len() <= 0 || w.Len() > m.window {
			return nil, fmt.Errorf("%s: window %d [%d, %d) is empty, longer than %d samples or outside the recording of %d samples",
				m.session.Source(), i, w.Start, w.End, m.window, pcm.Len())
		}
	}
	out := make([]diarize.Activity, len(windows))
	batches := (len(windows) + segmenterWindows - 1) / segmenterWindows
	pool := ort.NewWorkerPool(min(m.threads, batches))
	defer pool.Close()
	err := pool.Do(ctx, batches, func(b int) error {
		batch := windows[b*segmenterWindows : min((b+1)*segmenterWindows, len(windows))]
		buffer := m.buffers.Get().(*[]float32)
		defer m.buffers.Put(buffer)
		samples := (*buffer)[:len(batch)*m.window]
		for i, w := range batch {
			row, sound := samples[i*m.window:(i+1)*m.window], pcm.Samples(w.Start, w.End)
			for len(row) > 0 {
				row = row[copy(row, sound):]
			}
		}
		scores, err := m.run(ctx, samples, len(batch))
		if err != nil {
			return err
		}
		for i, w := range batch {
			out[b*segmenterWindows+i] = m.activity(scores[i*len(scores)/len(batch):(i+1)*len(scores)/len(batch)], w.Len())
		}
		return nil
	})
	return out, err
}

// run returns the outputs of n windows, frame after frame.
func (m *Segmenter) run(ctx context.Context, samples []float32, n int) ([]float32, error) {
	feed := map[string]*ort.Tensor{m.input: ort.NewFloat32([]int64{int64(n), 1, int64(m.window)}, samples)}
	out, err := m.session.Run(ctx, feed, m.output)
	if err != nil {
		return nil, err
	}
	shape := out[0].Shape()
	if len(shape) != 3 || shape[0] != int64(n) || shape[1] < 1 || shape[2] != int64(m.width) {
		return nil, fmt.Errorf("%s: %w: expected output %s as [%d,frames,%d]; found %v", m.session.Source(), ort.ErrContract, m.output, n, m.width, shape)
	}
	if last := (int(shape[1])-1)*m.shift + m.field; last > m.window+m.field+m.shift {
		return nil, fmt.Errorf("%s: %w: %d frames every %d samples reach beyond the window of %d", m.session.Source(), ort.ErrContract, shape[1], m.shift, m.window)
	}
	return out[0].Float32(), nil
}

// activity reads a window's outputs, of which samples are sound.
func (m *Segmenter) activity(scores []float32, samples int) diarize.Activity {
	a := diarize.Activity{Shift: m.shift, Field: m.field}
	frames := len(scores) / m.width
	frames = min(frames, max(1, (samples-m.field/2)/m.shift+1))
	a.Active = make([]uint8, frames)
	for i := range a.Active {
		row := scores[i*m.width : (i+1)*m.width]
		if m.classes == nil {
			for s, p := range row {
				if p >= activeAt {
					a.Active[i] |= 1 << s
				}
			}
			continue
		}
		best := 0
		for c, v := range row {
			if v > row[best] {
				best = c
			}
		}
		a.Active[i] = m.classes[best]
	}
	return a
}
