package stages

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// plain is a recognizer that only implements asr.Transcriber.
type plain struct{ text string }

func (p plain) Transcribe(_ context.Context, _ *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	start, end := speech[0].Seconds()
	return &asr.Transcript{Language: opt.Language, Segments: []asr.Segment{{Start: start, End: end, Text: p.text}}}, nil
}
func (plain) Languages() []string      { return []string{"en"} }
func (plain) Abilities() asr.Abilities { return asr.Abilities{} }
func (plain) Close() error             { return nil }

// TestRegisteredRecognizer checks that a model of either tier needs nothing but
// a registered asr.Transcriber.
func TestRegisteredRecognizer(t *testing.T) {
	recognizers.Register(func(m *models.Model, _ recognizers.Options) (plain, error) { return plain{m.Name}, nil }, "made-up")
	pcm := audio.FromSamples(make([]float32, 2*audio.SampleRate))
	speech := &Speech{Spans: []audio.Span{{End: pcm.Len()}}}
	for _, role := range []models.Role{models.RoleStandard, models.RoleOptimized} {
		set := &models.Set{Models: []models.Model{{Role: role, Name: "mine", Contract: "made-up", Languages: []string{"en"}}}}
		opt, err := spec.Options{}.Effective()
		require.NoError(t, err)
		log := slog.New(slog.DiscardHandler)
		s := &Stages{Engines: engines.New(set, engines.Options{}), Options: opt, Cores: 1, Gate: semaphore.NewWeighted(1), Log: log}

		_, err = s.FindLanguage(t.Context(), pcm, speech.Spans)
		var refused *spec.OptionError
		require.ErrorAs(t, err, &refused, "%s", role)
		assert.Equal(t, "asr_language", refused.Field)

		text, err := s.Transcribe(t.Context(), pcm, speech, Language{Code: "en"}, Reports{})
		require.NoError(t, err, "%s", role)
		require.Len(t, text.Transcript.Segments, 1)
		assert.Equal(t, "mine", text.Transcript.Segments[0].Text)
	}
	_, err := recognizers.Open(&models.Model{Role: models.RoleStandard, Name: "mine", Contract: "unknown"}, recognizers.Options{})
	require.ErrorContains(t, err, `standard model mine: this program has no recognizer for the contract "unknown"`)
}
