package tag

import (
	"slices"

	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// YAMNet's framing at 16 kHz: a patch is 96 frames of 400 samples, one every
// 160 samples, and begins every 48 frames.
const (
	patchSamples = 15600
	patchHop     = 7680
	patchFrames  = 96
	patchBands   = 64
	frameShift   = 160 // samples between frames
)

// Networks that score a whole clip get windows of two seconds every second.
// Networks that also score frames of 10 ms get ten seconds; the first and last
// second serve as context.
const (
	clipWindow  = 2.0
	clipHop     = 1.0
	frameWindow = 10
	frameMargin = 1
)

// Limited batches bound memory for recordings of any length.
const (
	batchPatches = 16 // for models.ContractYAMNet: eight seconds
	batchClips   = 8
)

// plan splits a recording into pieces for one call of the network.
type plan struct {
	grid   events.Grid
	rate   int // Hz
	window int // samples of one unit (patch, clip)
	hop    int // samples between units
	batch  int // units in one call
	exact  int // samples that every call must have, or 0 if the batch decides
	cells  int // whole seconds in one unit if frames of 10 ms are scored, else 0

	// feed returns tensors in room of n units from (n−1)·hop + window samples.
	feed func(x []float32, n int, room *room) map[string]*ort.Tensor
}

// room is memory that successive calls of the network share.
type room []float32

// take returns n numbers, whose values are undefined.
func (r *room) take(n int) []float32 {
	*r = slices.Grow((*r)[:0], n)[:n]
	return *r
}

// units returns how many units cover the given number of samples, at least one.
func (p plan) units(samples int) int {
	if samples <= p.window {
		return 1
	}
	return (samples-p.window+p.hop-1)/p.hop + 1
}

// samples returns the number of samples in n units.
func (p plan) samples(n int) int {
	if p.exact > 0 {
		return p.exact
	}
	return (n-1)*p.hop + p.window
}

// newPlan returns the plan for a layout at a sample rate in Hz.
func newPlan(l layout, rate int) plan {
	p := plan{rate: rate, window: patchSamples, hop: patchHop, batch: batchPatches, grid: events.Grid{Window: 0.96, Hop: 0.48}}
	switch l.contract {
	case models.ContractYAMNet:
		if l.fixed > 0 {
			// The input's fixed length determines the patches per call.
			p.batch = max(1, (l.fixed-patchSamples)/patchHop+1)
			p.exact = l.fixed
		}
		p.feed = func(x []float32, _ int, _ *room) map[string]*ort.Tensor {
			shape := []int64{int64(len(x))}
			if l.rank == 2 {
				shape = []int64{1, int64(len(x))}
			}
			return map[string]*ort.Tensor{l.input: ort.NewFloat32(shape, x)}
		}
		return p
	case models.ContractYAMNetPatches:
		mel := dsp.NewYAMNetMel()
		if l.single {
			p.batch = 1
		}
		p.feed = func(x []float32, n int, room *room) map[string]*ort.Tensor {
			size := n * patchFrames * patchBands
			both := room.take(size + mel.Frames(len(x))*patchBands)
			data, rows := both[:size], both[size:]
			mel.Compute(rows, x)
			for i := range n {
				copy(data[i*patchFrames*patchBands:(i+1)*patchFrames*patchBands], rows[i*patchFrames/2*patchBands:])
			}
			return map[string]*ort.Tensor{l.input: ort.NewFloat32([]int64{int64(n), patchFrames, patchBands}, data)}
		}
		return p
	}

	p.batch = batchClips
	if l.single {
		p.batch = 1
	}
	p.window, p.hop = int(clipWindow*float64(rate)), int(clipHop*float64(rate))
	// write adds the size numbers of one unit with the given shape.
	var (
		write func(dst, x []float32)
		shape []int64
	)
	switch l.contract {
	case models.ContractPANNs:
		switch {
		case l.fixed > 0:
			p.window = l.fixed
		case l.framewise:
			p.window = frameWindow * rate
		}
		shape = []int64{int64(p.window)}
		write = func(dst, x []float32) { copy(dst, x) }
	case models.ContractCED:
		mel := dsp.NewCEDMel()
		if l.fixed > 0 {
			p.window = l.fixed * frameShift
		}
		frames := mel.Frames(p.window)
		used := frames
		if l.fixed > 0 {
			used = l.fixed
		}
		shape = []int64{patchBands, int64(used)}
		write = func(dst, x []float32) {
			rows := make([]float32, frames*patchBands)
			mel.Compute(rows, x)
			dsp.Transpose(dst, rows[:used*patchBands], used, patchBands, used)
		}
	case models.ContractZipformerTagger:
		opt := dsp.DefaultFbankOptions()
		opt.SnipEdges, opt.HighHz = false, -400
		bank := dsp.NewFbank(opt)
		if l.fixed > 0 {
			p.window = l.fixed * frameShift
		}
		shape = []int64{int64(bank.Frames(p.window)), int64(opt.Bands)}
		write = func(dst, x []float32) { bank.Compute(dst, x) }
	}
	seconds := float64(p.window) / float64(rate)
	switch {
	case l.framewise && p.window%rate == 0 && p.window/rate > 2*frameMargin:
		// Each unit yields whole seconds; its first and last are context.
		p.cells = p.window / rate
		p.hop = p.window - 2*frameMargin*rate
		p.grid = events.Grid{Window: 1, Hop: 1}
	case seconds > 2*clipWindow:
		p.hop = p.window / 2
		p.grid = events.Grid{Window: seconds, Hop: seconds / 2}
	default:
		p.hop = min(p.hop, p.window)
		p.grid = events.Grid{Window: seconds, Hop: float64(p.hop) / float64(rate)}
	}
	size := 1
	for _, d := range shape {
		size *= int(d)
	}
	p.feed = func(x []float32, n int, room *room) map[string]*ort.Tensor {
		data := room.take(n * size)
		for i := range n {
			write(data[i*size:(i+1)*size], x[i*p.hop:i*p.hop+p.window])
		}
		feed := map[string]*ort.Tensor{l.input: ort.NewFloat32(append([]int64{int64(n)}, shape...), data)}
		if l.length.Name != "" {
			feed[l.length.Name] = ort.NewIntegers(l.length, slices.Repeat([]int{int(shape[0])}, n))
		}
		return feed
	}
	return p
}
