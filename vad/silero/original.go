package silero

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/vad"
)

// contextSamples is the number of samples of the previous window that the
// network reads, and rowWidth the number read per call.
const (
	contextSamples = 64
	rowWidth       = contextSamples + vad.Window
)

// errOtherLayers is returned for Silero's ports with another computation.
var errOtherLayers = fmt.Errorf("%w: it has the inputs of Silero VAD 5 and 6, but other layers: expected silero_vad.onnx of version 5 or 6 "+
	"(`otograph models pull silero-v6.2.1`)", ort.ErrContract)

// openOriginal opens a file as it is, and checks its inputs and outputs.
func openOriginal(model ort.Source, contract string) (*ort.Session, error) {
	s, err := ort.Open(model, ort.Options{})
	if err != nil {
		return nil, err
	}
	if _, err = ort.ContractOf(s.Graph(), models.RoleVAD, contract); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	want := ort.Contract{Exact: true, Inputs: []ort.Info{
		{Name: "input", Type: ort.Float32, Shape: []int64{-1, rowWidth}},
		{Name: "state", Type: ort.Float32, Shape: []int64{2, -1, featureSize}},
	}, Outputs: []ort.Info{{Name: "output", Type: ort.Float32}, {Name: "stateN", Type: ort.Float32}}}
	if _, ok := s.Graph().Input("sr"); ok {
		want.Inputs = append(want.Inputs, ort.Info{Name: "sr", Type: ort.Int64})
	}
	if err := s.Graph().Check(want); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// stepper returns a function that computes the probability of the next window of
// a recording with a file as it is.
func stepper(s *ort.Session) func(pcm *audio.PCM, w int) (float32, error) {
	input, state, next, prob := make([]float32, rowWidth), make([]float32, 2*featureSize), make([]float32, 2*featureSize), make([]float32, 1)
	shape := []int64{2, 1, featureSize}
	in := map[string]*ort.Tensor{"input": ort.NewFloat32([]int64{1, rowWidth}, input), "state": ort.NewFloat32(shape, state)}
	out := map[string]*ort.Tensor{"output": ort.NewFloat32([]int64{1, 1}, prob), "stateN": ort.NewFloat32(shape, next)}
	if rate, ok := s.Graph().Input("sr"); ok {
		shape := []int64{1}
		in["sr"] = ort.NewInt64(shape[:max(min(rate.Rank(), 1), 0)], []int64{audio.SampleRate})
	}
	return func(pcm *audio.PCM, w int) (float32, error) {
		fillWindow(input, pcm, w)
		if err := s.Into(in, out); err != nil {
			return 0, err
		}
		copy(state, next)
		return prob[0], bound(prob)
	}
}

// sameWithin bounds the differences between a network and its file, which other
// orders of sums cause; the largest seen was 1e-6.
const sameWithin = 1e-4

// compare compares a network with its file, called window by window, over
// synthetic sound that drives the probabilities up and down.
func (n *network) compare(original *ort.Session) error {
	const windows = 80
	pcm := audio.FromSamples(testSound(windows * vad.Window))
	got := make([]float32, windows)
	window := func(dst []float32, w int) { fillWindow(dst, pcm, w) }
	if err := n.run(context.Background(), context.Context.Err, window, newState(), got, 1); err != nil {
		return err
	}
	step := stepper(original)
	for w := range windows {
		p, err := step(pcm, w)
		if err != nil {
			return err
		}
		if !(math.Abs(float64(p-got[w])) <= sameWithin) {
			return errOtherLayers
		}
	}
	return nil
}

// testSound returns pulses through two moving resonances, a pause, and noise.
func testSound(samples int) []float32 {
	const period = audio.SampleRate * 5 / 4
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, samples)
	var a, b [2]float64 // the last two values of each resonance
	next := 0
	for i := range x {
		switch at := i % period; {
		case at < period*16/25: // 0.8 s
			pulse := 0.0
			if i >= next {
				pulse = 0.2
				next = i + 110 + i/64%60 // 94 to 145 Hz
			}
			sweep := float64(at) / period
			resonate := func(y *[2]float64, turn, keep float64) float64 {
				v := pulse + 2*keep*math.Cos(2*math.Pi*turn)*y[0] - keep*keep*y[1]
				y[0], y[1] = v, y[0]
				return v
			}
			x[i] = float32(resonate(&a, 0.03+0.03*sweep, 0.98) + 0.5*resonate(&b, 0.14-0.06*sweep, 0.97))
		case at < period*20/25:
		default:
			x[i] = 0.1 * (2*r.Float32() - 1)
		}
	}
	return x
}
