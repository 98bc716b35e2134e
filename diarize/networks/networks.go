// Package networks runs the published networks of package diarize through ONNX
// Runtime: speaker networks (ECAPA-TDNN and its relatives: the contracts of
// wespeaker, 3D-Speaker, NeMo (TitaNet) and speechbrain, each with the features
// of its training), and speaker segmentation networks
// (pyannote/segmentation-3.0 and its relatives, as k2-fsa publishes them for
// ONNX), which detect who speaks when within ten seconds, with overlaps.
package networks

import (
	"cmp"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/models"
)

// Options configures a network.
type Options struct {
	// Threads is the number of cores that one call of Embed or Segment uses; 0
	// means one. The result does not depend on it.
	Threads int
}

// batchWindows bounds the windows per call of a network. More were not faster,
// and the C library keeps the memory of their layers: with 16 windows its heap
// grew by 20 MB in an hour of speech.
const batchWindows = 4

// KnownVoice returns the least cosine of a speaker and a known voice: the
// model's own, or diarize.DefaultSameSpeaker.
func KnownVoice(m *models.Model) float64 {
	return cmp.Or(m.KnownVoice, m.SameSpeaker, diarize.DefaultSameSpeaker)
}
