package embed

import (
	"cmp"
	"fmt"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/voices"
)

// Matching returns the criteria for matching a speaker with a known voice: the
// model's own, or DefaultSameSpeaker without strangers.
func Matching(m *models.Model) (voices.Rule, error) {
	var strangers [][]float32
	if m.Strangers != nil {
		var err error
		if strangers, err = m.Strangers(); err != nil {
			return voices.Rule{}, fmt.Errorf("speaker model %s: %w", m.Name, err)
		}
	}
	return voices.NewRule(cmp.Or(m.KnownVoice, m.SameSpeaker, DefaultSameSpeaker), strangers), nil
}
