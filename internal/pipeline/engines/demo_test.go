package engines

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

// TestDemonstrationFollowsTheWordsModel checks that a result with words is a
// demonstration if their model is one, regardless of the speaker model, and
// that models that did not run do not count.
func TestDemonstrationFollowsTheWordsModel(t *testing.T) {
	set := func(words bool) *Engines {
		return &Engines{Set: &models.Set{Models: []models.Model{
			{Role: models.RoleStandard, Languages: []string{"en"}, Demo: words}, {Role: models.RoleEmbedder, Demo: true}, {Role: models.RoleTagger},
		}}}
	}
	for _, c := range []struct {
		name     string
		words    bool
		language string
		ran      spec.Capabilities
		want     bool
	}{
		{"demonstration words", true, "en", spec.Capabilities{ASR: true}, true},
		{"real words, demonstration speakers", false, "en", spec.Capabilities{ASR: true, Diarize: true}, false},
		{"words of no model, demonstration speakers", true, "zh", spec.Capabilities{ASR: true, Diarize: true}, false},
		{"speakers alone", false, "en", spec.Capabilities{Diarize: true}, true},
		{"speakers, and real sounds", false, "en", spec.Capabilities{Diarize: true, AudioEvents: true}, false},
		{"nothing", true, "en", spec.Capabilities{}, false},
	} {
		r := &spec.Result{}
		r.Tier, r.Language, r.Ran = spec.TierStandard, c.language, c.ran
		assert.Equal(t, c.want, set(c.words).Demonstrates(r), c.name)
	}
}

func TestSpeakersNote(t *testing.T) {
	for _, c := range []struct {
		name                    string
		words, voices, expected bool
		speakers                int
	}{
		{"real words, demonstration speakers", false, true, true, 2},
		{"nobody was found", false, true, false, 0},
		{"a demonstration as a whole says so itself", true, true, false, 2},
		{"real speakers", false, false, false, 2},
	} {
		e := &Engines{Set: &models.Set{Models: []models.Model{
			{Role: models.RoleStandard, Languages: []string{"en"}, Demo: c.words}, {Role: models.RoleEmbedder, Demo: c.voices},
		}}}
		r := &spec.Result{NumSpeakers: c.speakers}
		r.Tier, r.Language, r.Ran = spec.TierStandard, "en", spec.Capabilities{ASR: true, Diarize: true}
		assert.Equal(t, c.expected, e.SpeakersNote(r) != "", c.name)
	}
}

func TestDemonstrationSegmenterBesideRealModels(t *testing.T) {
	for _, other := range []models.Model{
		{Role: models.RoleEmbedder, Name: "voices"}, {Role: models.RoleStandard, Name: "words"}, {Role: models.RoleOptimized, Name: "words"},
	} {
		set := demo.Models()
		set.Models = append([]models.Model{other}, set.Models...)
		segmenter, err := New(set, Options{}).Segmenter()
		require.NoError(t, err)
		assert.Nil(t, segmenter, "beside a real %s", other.Role)
	}
}
