// Package dsp computes the spectral features that published speech and sound
// models expect: Kaldi filter banks, NeMo, YAMNet, speechbrain and CED log-mel
// matrices, FunASR's low-frame-rate stacking, and the real Fourier transform
// under them. It is pure Go (no cgo) and computes in float32.
//
// Every extractor is immutable after construction and safe for concurrent use:
// working memory comes from a pool, so that computing allocates nothing per
// frame and, once warm, nothing per call.
//
// Feature matrices are row-major []float32, frames x bands, and samples mono
// float32 at 16 kHz in [-1, 1], unless a method says otherwise.
package dsp
