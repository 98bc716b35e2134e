package stages

import (
	"context"
	"fmt"
	"strings"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Align aligns the words of a text with a recording; report, if not nil,
// receives the seconds of speech processed so far and in all. Times and
// probabilities are rounded as in results.
func (s *Stages) Align(ctx context.Context, pcm *audio.PCM, words []string, report func(done, total float64)) (Language, *align.Alignment, error) {
	var none Language
	if s.Options.ASRLanguage != nil { // before hours of audio are processed
		given, _ := spec.NormalizeLanguage(*s.Options.ASRLanguage) // validated before
		if _, err := s.aligner(given); err != nil {
			return none, nil, err
		}
	}
	speech, err := s.DetectSpeech(ctx, pcm)
	if err != nil {
		return none, nil, err
	}
	language, err := s.FindLanguage(ctx, pcm, speech.Spans)
	if err != nil {
		return none, nil, err
	}
	m, err := s.aligner(language.Code)
	if err != nil {
		return none, nil, err
	}
	model, err := s.openAligner(ctx, m)
	if err != nil {
		return none, nil, err
	}
	a, err := align.Words(ctx, model, pcm, speech.Spans, words, align.Options{Language: language.Code, Parallel: s.Cores, Gate: s.Gate, Progress: report})
	if err != nil {
		return none, nil, err
	}
	at := ClockOf(pcm)
	a.Score = Round4(a.Score)
	for i := range a.Words {
		w := &a.Words[i]
		w.Start, w.End, w.Probability = at.Start(w.Start), at.End(w.End), Round4(w.Probability)
	}
	for i := range a.Extra {
		a.Extra[i].Start, a.Extra[i].End = at.Start(a.Extra[i].Start), at.End(a.Extra[i].End)
	}
	return language, a, nil
}

// aligner returns the model that aligns texts of a language.
func (s *Stages) aligner(language string) (*models.Model, error) {
	set := s.Engines.Set
	if m, ok := set.AlignerFor(language); ok {
		return m, nil
	}
	why := fmt.Sprintf("no model of set %q supports the language %q", set.Name, language)
	if m, ok := set.OptimizedFor(language); ok {
		why = fmt.Sprintf("model %s (%s), which transcribes the language %q, has none", m.Name, m.Contract, language)
	}
	return nil, fmt.Errorf("%w: role %s: alignment needs a model with a CTC output: %s; `otograph models list --role optimized` lists published ones, with ctc in their names", models.ErrMissing, models.RoleOptimized, why)
}

// openAligner opens a model with a CTC output.
func (s *Stages) openAligner(ctx context.Context, m *models.Model) (align.Model, error) {
	t, err := s.Engines.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	model, ok := t.(align.Model)
	if !ok {
		return nil, fmt.Errorf("%s model %s (%s): the recognizer has no CTC output", m.Role, m.Name, m.Contract)
	}
	return model, nil
}

// minTextProbability is the least mean word probability of a text that counts
// as spoken in the recording. The right text of clean speech is above 0.8,
// another text below 0.1; a text with every other word wrong is between.
const minTextProbability = 0.4

// leastSpoken is the least number of spoken words of a text that is longer than
// the recording.
const leastSpoken = 3

// Fits reports whether the words of a text are spoken in the recording that
// they were aligned with, by the mean probability of the words that the model
// can spell. A text of only part of the recording also fits, and so does a
// recording of only part of the text: then only the words in the recording
// count, and each further spoken word counts as a word of probability 0.
func Fits(words []align.Word, extra []align.Extra) bool {
	var sum, all, spoken, outside float64
	for _, w := range words {
		if !w.Wild {
			sum += w.Probability
			all++
		}
		if !w.Wild && !w.Missing {
			spoken++
		}
	}
	for _, e := range extra {
		outside += float64(len(strings.Fields(e.Text)))
	}
	return sum > 0 && (sum >= minTextProbability*all || spoken >= leastSpoken && sum >= minTextProbability*(spoken+outside))
}
