package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

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

// streamTranscription answers with events: a delta for each sentence, with
// diarization also the segment and its speaker, and the whole text at the end.
// The status is sent before the end of the task is known, so what fails from
// here on is an event too.
func (s *Server) streamTranscription(w http.ResponseWriter, r *request, id string, form *transcription) error {
	stream := newEventStream(w)
	type answer struct {
		result spec.Result
		err    error
	}
	answers := make(chan answer, 1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		result, err := s.finished(ctx, r, id)
		answers <- answer{result, err}
	}()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if stream.beat() != nil {
				return nil // the client has gone; the task goes on
			}
		case a := <-answers:
			if a.err != nil {
				failure := s.translate(a.err)
				s.log.Info("streamed transcription failed", "request", r.id, "task", id, "error_code", failure.Code, "error", failure.Error())
				_ = stream.send(errorBody{failure.openAI()})
				return nil
			}
			if err := sendTranscription(stream, form, a.result); err != nil {
				s.log.Debug("client left a stream", "request", r.id, "error", err)
			}
			return nil
		}
	}
}

func sendTranscription(stream eventStream, form *transcription, result spec.Result) error {
	text := ""
	for _, seg := range result.Segments {
		delta := textDelta{Type: "transcript.text.delta", Delta: spec.Separated(text, strings.TrimSpace(seg.Text))}
		if delta.Delta == "" {
			continue
		}
		text += delta.Delta
		if form.logprobs {
			delta.Logprobs = logprobs([]spec.Segment{seg})
		}
		if form.format == formatDiarized {
			delta.Segment = fmt.Sprintf("seg_%d", seg.ID)
		}
		if err := stream.send(delta); err != nil {
			return err
		}
		if form.format == formatDiarized {
			if err := stream.send(diarizedSegmentOf(seg)); err != nil {
				return err
			}
		}
	}
	done := textDone{Type: "transcript.text.done", Text: text, Usage: used(result)}
	if form.logprobs {
		done.Logprobs = logprobs(result.Segments)
	}
	return stream.send(done)
}
