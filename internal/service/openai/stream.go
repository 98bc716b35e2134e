package openai

import (
	"fmt"
	"strings"

	"github.com/otograph/otograph/spec"
)

// Events of a streamed transcription.
type (
	textDelta struct {
		Type     string         `json:"type"`
		Delta    string         `json:"delta"`
		Segment  string         `json:"segment_id,omitempty"`
		Logprobs []tokenLogprob `json:"logprobs,omitzero"`
	}
	// textDone has no usage: OpenAI counts tokens there, which this service
	// does not count, and its clients refuse seconds.
	textDone struct {
		Type      string         `json:"type"`
		Text      string         `json:"text"`
		Languages []languageCode `json:"languages"`
		Logprobs  []tokenLogprob `json:"logprobs,omitzero"`
		Warnings  []spec.Warning `json:"warnings,omitempty"` // in a header of a response that is not streamed
	}
)

// Speech turns the sentences of a running task and its result into the events
// of a streamed transcription.
type Speech struct {
	form *Form
	text string // sent so far
}

// Speech returns the state of streaming the form's transcription, before any
// event.
func (f *Form) Speech() *Speech { return &Speech{form: f} }

// Waits reports whether sentences are only sent with the result: they need a
// speaker or the words' probabilities.
func (s *Speech) Waits() bool { return s.form.format == formatDiarized || s.form.logprobs }

// Sentence returns the event of a sentence, nil if it has no text.
func (s *Speech) Sentence(seg spec.Segment) any {
	delta := textDelta{Type: "transcript.text.delta", Delta: spec.Separated(s.text, strings.TrimSpace(seg.Text))}
	if delta.Delta == "" {
		return nil
	}
	s.text += delta.Delta
	if s.form.logprobs {
		delta.Logprobs = logprobs([]spec.Segment{seg})
	}
	if s.form.format == formatDiarized {
		delta.Segment = fmt.Sprintf("seg_%d", seg.ID)
	}
	return delta
}

// End returns the events of the rest of the result, and of the whole text,
// which is authoritative if a failed attempt sent different sentences.
func (s *Speech) End(result spec.Result) (events []any) {
	whole := wholeText(result)
	if s.text != "" {
		if rest, ok := strings.CutPrefix(whole, s.text); ok && rest != "" {
			events = append(events, textDelta{Type: "transcript.text.delta", Delta: rest})
		}
	} else {
		for _, seg := range result.Segments {
			if event := s.Sentence(seg); event != nil {
				events = append(events, event)
			}
			if s.form.format == formatDiarized && strings.TrimSpace(seg.Text) != "" {
				events = append(events, diarizedSegmentOf(seg))
			}
		}
	}
	done := textDone{Type: "transcript.text.done", Text: whole, Languages: languages(result), Warnings: result.Warnings}
	if s.form.logprobs {
		done.Logprobs = logprobs(result.Segments)
	}
	return append(events, done)
}
