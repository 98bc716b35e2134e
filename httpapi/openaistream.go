package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/spec"
)

// The events of a streamed transcription.
type (
	textDelta struct {
		Type     string         `json:"type"`
		Delta    string         `json:"delta"`
		Segment  string         `json:"segment_id,omitempty"`
		Logprobs []tokenLogprob `json:"logprobs,omitzero"`
	}
	textDone struct {
		Type     string         `json:"type"`
		Text     string         `json:"text"`
		Logprobs []tokenLogprob `json:"logprobs,omitzero"`
		Usage    usage          `json:"usage"`
	}
	errorBody struct {
		Error openAIError `json:"error"`
	}
)

// streamTranscription answers with events: a delta for each sentence as soon as it
// is known, with diarization also the segment and its speaker, and the whole text at
// the end.
// The status is sent before the end of the task is known, so what fails from
// here on is an event too.
func (s *Server) streamTranscription(w http.ResponseWriter, r *request, id string, form *transcription) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	states, err := s.cfg.Tasks.Follow(ctx, r.who.Account, id)
	if err != nil {
		return err
	}
	stream := newEventStream(w)
	type answer struct {
		result spec.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := s.finished(ctx, r, id, form)
		answers <- answer{result, err}
	}()
	said := spoken{stream: stream, form: form}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if stream.beat() != nil {
				return nil // the client has gone; the task continues
			}
		case state := <-states:
			if said.tell(state.Told) != nil {
				return nil
			}
		case a := <-answers:
			if a.err != nil {
				failure := s.translate(a.err)
				s.log.Info("streamed transcription failed", "request", r.id, "task", id, "error_code", failure.Code, "error", failure.Error())
				_ = stream.send(errorBody{failure.openAI()})
				return nil
			}
			if err := said.end(a.result); err != nil {
				s.log.Debug("client left a stream", "request", r.id, "error", err)
			}
			return nil
		}
	}
}

// spoken holds what a streamed transcription has sent.
type spoken struct {
	stream eventStream
	form   *transcription
	text   string
	told   teller
}

// tell sends deltas of sentences of the running task. Sentences that need a
// speaker or the words' probabilities wait for the result. Sentences of another
// attempt are compared with the result at the end.
func (s *spoken) tell(told *tasks.Told) error {
	if s.form.format == formatDiarized || s.form.logprobs || told == nil || s.told.attempt != 0 && told.Attempt != s.told.attempt {
		return nil
	}
	_, news := s.told.more(told)
	for _, seg := range news {
		if err := s.delta(seg); err != nil {
			return err
		}
	}
	return nil
}

// delta sends a sentence.
func (s *spoken) delta(seg spec.Segment) error {
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
	return s.stream.send(delta)
}

// end sends what is missing of the result, and the whole text, which counts where an
// attempt that failed had told something else.
func (s *spoken) end(result spec.Result) error {
	whole := wholeText(result)
	if s.text != "" {
		if rest, ok := strings.CutPrefix(whole, s.text); ok && rest != "" {
			if err := s.stream.send(textDelta{Type: "transcript.text.delta", Delta: rest}); err != nil {
				return err
			}
		}
	} else {
		for _, seg := range result.Segments {
			if err := s.delta(seg); err != nil {
				return err
			}
			if s.form.format != formatDiarized || strings.TrimSpace(seg.Text) == "" {
				continue
			}
			if err := s.stream.send(diarizedSegmentOf(seg)); err != nil {
				return err
			}
		}
	}
	done := textDone{Type: "transcript.text.done", Text: whole, Usage: used(result)}
	if s.form.logprobs {
		done.Logprobs = logprobs(result.Segments)
	}
	return s.stream.send(done)
}
