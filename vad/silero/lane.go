package silero

import (
	"errors"
	"fmt"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/vad"
)

// lane is the network bound to memory, so that a step allocates nothing.
type lane struct {
	layout layout
	bind   *ort.Binding

	input  []float32   // rows × (context + window)
	probs  []float32   // one per row
	state  [][]float32 // per tensor: layers × rows × size
	stateN [][]float32
}

func newLane(s *ort.Session, l layout, rows int) (*lane, error) {
	n := int64(rows)
	batch := n // of the state
	if l.sequence {
		batch = 1
	}
	width := int64(l.context + vad.Window)
	ln := &lane{layout: l, input: make([]float32, n*width), probs: make([]float32, n)}
	in := map[string]*ort.Tensor{l.input: ort.NewFloat32([]int64{n, width}, ln.input)}
	if l.rate != "" {
		shape := []int64{}
		if l.rateRank == 1 {
			shape = []int64{1}
		}
		in[l.rate] = ort.NewInt64(shape, []int64{audio.SampleRate})
	}
	probShape := []int64{n, 1}
	if o, _ := s.Graph().Output(l.output); o.Rank() == 1 || o.Rank() < 0 && l.sequence {
		probShape = []int64{n}
	}
	out := map[string]*ort.Tensor{l.output: ort.NewFloat32(probShape, ln.probs)}
	for i := range l.stateIn {
		shape := []int64{l.stateLayers, batch, l.stateSize}
		size := l.stateLayers * batch * l.stateSize
		ln.state = append(ln.state, make([]float32, size))
		ln.stateN = append(ln.stateN, make([]float32, size))
		in[l.stateIn[i]] = ort.NewFloat32(shape, ln.state[i])
		out[l.stateOut[i]] = ort.NewFloat32(shape, ln.stateN[i])
	}
	var err error
	ln.bind, err = s.Bind(in, out)
	return ln, err
}

// fill copies a window of the recording to a row.
func (ln *lane) fill(row int, pcm *audio.PCM, window int) {
	width := ln.layout.context + vad.Window
	fillWindow(ln.input[row*width:(row+1)*width], ln.layout.context, pcm, window)
}

// fillWindow copies a window to dst after context samples, with zeros outside.
func fillWindow(dst []float32, context int, pcm *audio.PCM, window int) {
	from := window*vad.Window - context
	to := (window + 1) * vad.Window
	n := 0
	if from < 0 {
		n = copy(dst, zeros[:-from])
		from = 0
	}
	n = len(pcm.Append(dst[:n], from, to))
	clear(dst[n:])
}

var zeros [contextSamples]float32

// step computes one probability per row and advances the state.
func (ln *lane) step() error {
	if err := ln.bind.Run(); err != nil {
		return err
	}
	for i := range ln.state {
		copy(ln.state[i], ln.stateN[i])
	}
	return bound(ln.probs)
}

// bound clamps probabilities to 0 and 1, which a sigmoid exceeds only by
// rounding. Anything else, including NaN, means that the model is broken.
func bound(probs []float32) error {
	for i, p := range probs {
		if !(p >= -1e-4 && p <= 1+1e-4) {
			return fmt.Errorf("%w: %v as the probability of speech", errBroken, p)
		}
		probs[i] = min(max(p, 0), 1)
	}
	return nil
}

var errBroken = errors.New("the voice activity model gives impossible values")

// rowState appends a row's state to dst, and loadRow restores it.
func (ln *lane) rowState(dst []float32, row int) []float32 {
	dst = dst[:0]
	ln.eachRow(row, func(part []float32) { dst = append(dst, part...) })
	return dst
}

func (ln *lane) loadRow(row int, state []float32) {
	ln.eachRow(row, func(part []float32) { state = state[copy(part, state):] })
}

func (ln *lane) eachRow(row int, f func([]float32)) {
	size := int(ln.layout.stateSize)
	for _, s := range ln.state {
		batch := len(s) / (size * int(ln.layout.stateLayers))
		for layer := range int(ln.layout.stateLayers) {
			at := (layer*batch + row) * size
			f(s[at : at+size : at+size])
		}
	}
}

func (ln *lane) close() error { return ln.bind.Close() }
