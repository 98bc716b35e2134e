package networks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/voices"
)

const (
	// shortest is the length to which shorter windows are repeated: below half
	// a second embeddings are poor, and far below it the convolutions fail.
	shortest = audio.SampleRate / 2
	// longest is the longest window per call; a longer one is cut into equal
	// pieces whose embeddings are averaged.
	longest = 15 * audio.SampleRate
)

// Embedder is an open speaker network. It is safe for concurrent use.
type Embedder struct {
	session   *ort.Session
	layout    layout
	extractor extractor
	threads   int
	model     models.Model // with the cosines that it states
	plda      *diarize.PLDA
}

var _ diarize.Embedder = (*Embedder)(nil)

// OpenEmbedder opens a speaker network, as returned by library.OpenFile,
// library.OpenDir and demo.Models. Errors name the file, its role, the expected
// and the actual value.
func OpenEmbedder(model *models.Model, opt Options) (*Embedder, error) {
	src, err := ort.SourceOf(model, model.Main())
	if err != nil {
		return nil, err
	}
	m, err := openEmbedder(src, *model, opt)
	f, brings := model.File(models.PartPLDA)
	if err != nil || !brings {
		return m, err
	}
	data, err := f.Bytes()
	if err == nil {
		m.plda, err = diarize.ParsePLDA(data, m.Dim())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedder model %s: %s: %w", model.Name, f.Name, err), m.Close())
	}
	return m, nil
}

// openEmbedder opens a network from a file or from memory.
func openEmbedder(src ort.Source, model models.Model, opt Options) (*Embedder, error) {
	if model.SameSpeaker < 0 || model.SameSpeaker > 1 || math.IsNaN(model.SameSpeaker) {
		return nil, fmt.Errorf("%s: the same-speaker cosine must be between 0 and 1, got %v", src, model.SameSpeaker)
	}
	graph, contract, err := ort.InspectModel(src, models.RoleEmbedder, model.Contract)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(graph, contract)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	session, err := ort.Open(src, ort.Options{Outputs: []string{l.output}})
	if err != nil {
		return nil, err
	}
	m := &Embedder{session: session, layout: l, extractor: newExtractor(l), threads: max(opt.Threads, 1), model: model}
	if err := m.tryOut(); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return m, nil
}

// tryOut runs one second of a tone, to detect on opening a network that cannot
// take its own contract's input, and to find the dimension if the file does not
// declare it.
func (m *Embedder) tryOut() error {
	tone := make([]float32, audio.SampleRate)
	for i := range tone {
		tone[i] = float32(0.1 * math.Sin(2*math.Pi*220*float64(i)/audio.SampleRate))
	}
	dim := m.layout.dim
	m.layout.dim = 0
	rows, err := m.run(context.Background(), [][]float32{m.fit(tone)})
	if err != nil {
		return err
	}
	if dim != 0 && len(rows[0]) != dim {
		return fmt.Errorf("%s: %w: expected %d numbers in output %s, as the file states; found %d", m.session.Source(), ort.ErrContract, dim, m.layout.output, len(rows[0]))
	}
	m.layout.dim = len(rows[0])
	return nil
}

// Dim returns the dimension of an embedding (192 for the service's networks).
func (m *Embedder) Dim() int { return m.layout.dim }

// SameSpeaker returns the cosine from which two clusters are one voice, 0 if
// the model states none.
func (m *Embedder) SameSpeaker() float64 { return m.model.SameSpeaker }

// Cosines returns the usual cosines of two windows of one voice and of two, 0 if
// the model states none.
func (m *Embedder) Cosines() (one, two float64) { return m.model.OneVoice, m.model.TwoVoices }

// PLDA returns the model's analysis, nil if it has none.
func (m *Embedder) PLDA() *diarize.PLDA { return m.plda }

// Close frees the network after the calls in progress; it may be repeated.
func (m *Embedder) Close() error { return m.session.Close() }

// piece is one input of the network: a window or an equal part of a long one.
type piece struct {
	window int
	audio.Span
}

// Embed returns one embedding of unit length per window of pcm. Windows of the
// same length share calls of the network, a few at a time. A window of digital
// silence, or one whose embedding is NaN, has the zero vector.
func (m *Embedder) Embed(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([][]float32, error) {
	var pieces []piece
	for i, w := range windows {
		if w.Start < 0 || w.End > pcm.Len() || w.Len() <= 0 {
			return nil, fmt.Errorf("%s: window %d [%d, %d) is empty or outside the recording of %d samples", m.session.Source(), i, w.Start, w.End, pcm.Len())
		}
		if !slices.ContainsFunc(pcm.Samples(w.Start, w.End), func(x float32) bool { return x != 0 }) {
			continue
		}
		parts := (w.Len() + longest - 1) / longest
		for k := range parts {
			pieces = append(pieces, piece{i, audio.Span{Start: w.Start + w.Len()*k/parts, End: w.Start + w.Len()*(k+1)/parts}})
		}
	}
	// Equal lengths are adjacent, in the windows' order within a length.
	slices.SortStableFunc(pieces, func(a, b piece) int { return m.length(a) - m.length(b) })
	most := batchWindows
	if m.layout.single {
		most = 1
	}
	var batches [][2]int // ranges of pieces of one length
	for from := 0; from < len(pieces); {
		to := from + 1
		for to < len(pieces) && to-from < most && m.length(pieces[to]) == m.length(pieces[from]) {
			to++
		}
		batches = append(batches, [2]int{from, to})
		from = to
	}
	embedded := make([][]float32, len(pieces))
	pool := ort.NewWorkerPool(min(m.threads, len(batches)))
	defer pool.Close()
	err := pool.Do(ctx, len(batches), func(b int) error {
		from, to := batches[b][0], batches[b][1]
		inputs := make([][]float32, to-from)
		for i, p := range pieces[from:to] {
			inputs[i] = m.fit(pcm.Samples(p.Start, p.End))
		}
		rows, err := m.run(ctx, inputs)
		copy(embedded[from:to], rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(windows))
	for i := range vectors {
		vectors[i] = make([]float32, m.layout.dim)
	}
	for i, p := range pieces {
		if voices.Normalize(embedded[i]) {
			for d, v := range embedded[i] {
				vectors[p.window][d] += v
			}
		}
	}
	for _, v := range vectors {
		if !voices.Normalize(v) {
			clear(v)
		}
	}
	return vectors, nil
}

// length returns a length in the network's units, by which windows are grouped.
func (m *Embedder) length(p piece) int {
	if m.layout.frames > 0 {
		return m.layout.frames
	}
	return m.extractor.length(max(p.Len(), shortest))
}

// fit repeats samples that are too short for the network, and repeats or cuts
// them to the length of a network with a fixed number of frames.
func (m *Embedder) fit(x []float32) []float32 {
	want := max(len(x), shortest)
	if fixed := m.layout.frames; fixed > 0 {
		// The least number of samples with enough frames.
		for want = fixed; m.extractor.length(want) < fixed; {
			want += max(1, (fixed-m.extractor.length(want))*80)
		}
		for want > 1 && m.extractor.length(want-1) >= fixed {
			want--
		}
	}
	if want <= len(x) {
		return x[:want]
	}
	out := make([]float32, want)
	for n := 0; n < want; {
		n += copy(out[n:], x)
	}
	return out
}

// run computes the embeddings of inputs of equal length in these units.
func (m *Embedder) run(ctx context.Context, inputs [][]float32) ([][]float32, error) {
	n := len(inputs)
	length := m.extractor.length(len(inputs[0]))
	size := m.extractor.size(length)
	data := make([]float32, n*size)
	for i, x := range inputs {
		// Lengths may differ by less than a frame; the raw waveform's cannot.
		m.extractor.write(data[i*size:(i+1)*size], x)
	}
	shape := []int64{int64(n), int64(size)}
	switch {
	case m.layout.contract == models.ContractNeMoSpeaker:
		shape = []int64{int64(n), int64(m.layout.bands), int64(size / m.layout.bands)}
	case m.layout.bands > 0:
		shape = []int64{int64(n), int64(length), int64(m.layout.bands)}
	}
	feed := map[string]*ort.Tensor{m.layout.input: ort.NewFloat32(shape, data)}
	if in := m.layout.length; in.Name != "" {
		feed[in.Name] = lengths(in, n, length)
	}
	out, err := m.session.Run(ctx, feed, m.layout.output)
	if err != nil {
		return nil, err
	}
	flat, dims := out[0].Float32(), out[0].Shape()
	dim := len(flat) / n
	if dim == 0 || len(flat)%n != 0 || m.layout.dim != 0 && dim != m.layout.dim || dims[len(dims)-1] != int64(dim) {
		return nil, fmt.Errorf("%s: %w: expected output %s as [%d,%d]; found %v", m.session.Source(), ort.ErrContract, m.layout.output, n, m.layout.dim, dims)
	}
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = flat[i*dim : (i+1)*dim : (i+1)*dim]
	}
	return rows, nil
}

// lengths returns the second input: the number of frames, for speechbrain the
// share of the batch's longest row (all are equally long), or the weight of each
// frame, as community-1's network takes it.
func lengths(in ort.Info, n, length int) *ort.Tensor {
	switch {
	case in.Type != ort.Float32:
		return ort.NewIntegers(in, slices.Repeat([]int{length}, n))
	case in.Rank() == 2:
		return ort.NewFloat32([]int64{int64(n), int64(length)}, slices.Repeat([]float32{1}, n*length))
	}
	return ort.NewFloat32([]int64{int64(n)}, slices.Repeat([]float32{1}, n))
}
