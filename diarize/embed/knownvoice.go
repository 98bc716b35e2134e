package embed

import (
	"cmp"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/models"
)

// KnownVoice returns the least cosine of a speaker and a known voice: the
// model's own, or diarize.DefaultSameSpeaker.
func KnownVoice(m *models.Model) float64 {
	return cmp.Or(m.KnownVoice, m.SameSpeaker, diarize.DefaultSameSpeaker)
}
