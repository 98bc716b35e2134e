package embed

import (
	"github.com/otograph/otograph/internal/dsp"
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
		return kaldi{dsp.NewFbank(opt)}
	case models.ContractNeMoSpeaker:
		return nemo{dsp.NewNeMoMel(l.bands)}
	case models.ContractSpeechBrain:
		return speechbrain{dsp.NewSpeechbrainFbank(l.bands)}
	}
	return samples{}
}

// kaldi: filter banks with the mean over the window subtracted, [T, bands].
type kaldi struct{ bank *dsp.Fbank }

func (k kaldi) length(n int) int { return k.bank.Frames(n) }
func (k kaldi) size(t int) int   { return t * k.bank.Bands() }
func (k kaldi) write(dst, x []float32) {
	n := k.bank.Compute(dst, x)
	dsp.SubtractMean(dst, n, k.bank.Bands())
}

// nemo: normalized log-mel, [bands, T] with T padded with zeros to a multiple
// of 16, as in the networks' training.
type nemo struct{ mel *dsp.NeMoMel }

func (k nemo) padded(t int) int { return (t + 15) &^ 15 }
func (k nemo) length(n int) int { return k.mel.Valid(n) }
func (k nemo) size(t int) int   { return k.padded(t) * k.mel.Bands() }
func (k nemo) write(dst, x []float32) {
	t, bands := k.mel.Valid(len(x)), k.mel.Bands()
	rows := make([]float32, t*bands)
	k.mel.Compute(rows, x, t)
	dsp.NormalizePerFeature(rows, t, bands)
	dsp.Transpose(dst, rows, t, bands, k.padded(t))
}

// speechbrain: its own filter banks, clamped and mean subtracted, [T, bands].
type speechbrain struct{ bank *dsp.SpeechbrainFbank }

func (k speechbrain) length(n int) int       { return k.bank.Frames(n) }
func (k speechbrain) size(t int) int         { return t * k.bank.Bands() }
func (k speechbrain) write(dst, x []float32) { k.bank.Compute(dst, x) }

// samples: passed unchanged.
type samples struct{}

func (samples) length(n int) int       { return n }
func (samples) size(n int) int         { return n }
func (samples) write(dst, x []float32) { copy(dst, x) }
