package tag

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph/audio"
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

// CED scores clips: windows of two seconds every second.
const (
	clipWindow = 2 * audio.SampleRate
	clipHop    = audio.SampleRate
)

// Limited batches bound memory for recordings of any length.
const (
	batchPatches = 16 // for models.ContractYAMNet: eight seconds
	batchClips   = 8
)

// plan splits a recording into pieces for one call of the network.
type plan struct {
	grid   events.Grid
	window int // samples of one unit (patch, clip)
	hop    int // samples between units
	batch  int // units in one call
	exact  int // samples that every call must have, or 0 if the batch decides

	// feed returns the input in room of n units from (n−1)·hop + window samples.
	feed func(x []float32, n int, room *room) *ort.Tensor
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

// newPlan returns the plan for a layout.
func newPlan(l layout) plan {
	p := plan{window: patchSamples, hop: patchHop, batch: batchPatches, grid: events.Grid{Window: 0.96, Hop: 0.48}}
	switch l.contract {
	case models.ContractYAMNet:
		if l.fixed > 0 {
			// The input has a fixed length: that many patches per call.
			p.batch = max(1, (l.fixed-patchSamples)/patchHop+1)
			p.exact = l.fixed
		}
		p.feed = func(x []float32, _ int, _ *room) *ort.Tensor {
			shape := []int64{1, int64(len(x))}
			return ort.NewFloat32(shape[2-l.rank:], x)
		}
		return p
	case models.ContractYAMNetPatches:
		p.feed = patches(dsp.NewYAMNetMel())
	case models.ContractCED:
		p.batch, p.window = batchClips, clipWindow
		if l.fixed > 0 {
			p.window = l.fixed * frameShift
		}
		p.hop = min(clipHop, p.window)
		if p.window > 2*clipWindow {
			p.hop = p.window / 2
		}
		p.grid = events.Grid{Window: float64(p.window) / audio.SampleRate, Hop: float64(p.hop) / audio.SampleRate}
		p.feed = clips(dsp.NewCEDMel(), p, l.fixed)
	}
	if l.single {
		p.batch = 1
	}
	return p
}

// patches returns the feed of YAMNet's patches, which share the frames of a
// recording.
func patches(mel *dsp.Extractor) func(x []float32, n int, room *room) *ort.Tensor {
	return func(x []float32, n int, room *room) *ort.Tensor {
		size := n * patchFrames * patchBands
		both := room.take(size + mel.Frames(len(x))*patchBands)
		data, rows := both[:size], both[size:]
		mel.Compute(rows, x)
		for i := range n {
			copy(data[i*patchFrames*patchBands:(i+1)*patchFrames*patchBands], rows[i*patchFrames/2*patchBands:])
		}
		return ort.NewFloat32([]int64{int64(n), patchFrames, patchBands}, data)
	}
}

// clips returns the feed of CED's windows: bands by frames, of which fixed are
// used if the file has a fixed number.
func clips(mel *dsp.Extractor, p plan, fixed int) func(x []float32, n int, room *room) *ort.Tensor {
	frames := mel.Frames(p.window)
	used := cmp.Or(fixed, frames)
	return func(x []float32, n int, room *room) *ort.Tensor {
		size := patchBands * used
		both := room.take(n*size + frames*patchBands)
		data, rows := both[:n*size], both[n*size:]
		for i := range n {
			mel.Compute(rows, x[i*p.hop:i*p.hop+p.window])
			dsp.Transpose(data[i*size:(i+1)*size], rows[:used*patchBands], used, patchBands, used)
		}
		return ort.NewFloat32([]int64{int64(n), patchBands, int64(used)}, data)
	}
}
