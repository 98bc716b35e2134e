package embed

import (
	"cmp"
	"fmt"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/models"
)

// Matching returns when a speaker counts as a known voice with a model: what the model
// says, or from DefaultSameSpeaker on and without strangers.
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
