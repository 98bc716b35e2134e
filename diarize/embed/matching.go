package embed

import (
	"cmp"
	"fmt"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/models"
)

// Matching returns the criteria for matching a speaker with a known voice: the
// model's own, or DefaultSameSpeaker without strangers.
func Matching(m *models.Model) (diarize.Matching, error) {
	var strangers [][]float32
	if m.Strangers != nil {
		var err error
		if strangers, err = m.Strangers(); err != nil {
			return diarize.Matching{}, fmt.Errorf("speaker model %s: %w", m.Name, err)
		}
	}
	return diarize.NewMatching(cmp.Or(m.KnownVoice, m.SameSpeaker, DefaultSameSpeaker), strangers), nil
}
