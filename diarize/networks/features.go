package networks

import (
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/models"
)

// extractor converts samples to the network's input.
type extractor interface {
	// length returns the number of frames (or samples) for n samples.
	length(n int) int
	// size returns the size in the tensor of length frames, including padding.
	size(length int) int
	// write fills dst (size numbers, zero before) from samples.
	write(dst, samples []float32)
}

func newExtractor(l layout) extractor {
	switch l.contract {
	case models.ContractWeSpeaker, models.Contract3DSpeaker:
		opt := dsp.DefaultFbankOptions()
		opt.Bands = l.bands
		if l.contract == models.ContractWeSpeaker {
			opt.Window, opt.Scale = dsp.WindowHamming, 32768
		}
		return banks{dsp.NewFbank(opt)}
	case models.ContractNeMoSpeaker:
		return nemo{dsp.NewNeMoMel(l.bands)}
	case models.ContractSpeechBrain:
		return banks{dsp.NewSpeechbrainFbank(l.bands)}
	}
	return samples{}
}

// banks: filter banks with the mean over the window subtracted, [T, bands].
type banks struct{ *dsp.Extractor }

func (k banks) length(n int) int       { return k.Frames(n) }
func (k banks) size(t int) int         { return t * k.Bands() }
func (k banks) write(dst, x []float32) { dsp.SubtractMean(dst, k.Compute(dst, x), k.Bands()) }

// nemo: normalized log-mel, [bands, T] with T padded with zeros to a multiple
// of 16, as in the networks' training.
type nemo struct{ *dsp.Extractor }

func (k nemo) padded(t int) int { return (t + 15) &^ 15 }
func (k nemo) length(n int) int { return k.Frames(n) }
func (k nemo) size(t int) int   { return k.padded(t) * k.Bands() }
func (k nemo) write(dst, x []float32) {
	t, bands := k.Frames(len(x)), k.Bands()
	rows := make([]float32, t*bands)
	k.Compute(rows, x)
	dsp.NormalizePerFeature(rows, t, bands)
	dsp.Transpose(dst, rows, t, bands, k.padded(t))
}

// samples: passed unchanged.
type samples struct{}

func (samples) length(n int) int       { return n }
func (samples) size(n int) int         { return n }
func (samples) write(dst, x []float32) { copy(dst, x) }
