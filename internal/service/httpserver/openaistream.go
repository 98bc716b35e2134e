package httpserver

import (
	"context"
	"net/http"
	"time"

	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// streamTranscription responds with events: a delta for each sentence as soon
// as it is known, with diarization also the segment and its speaker, and the
// whole text at the end. The status is sent before the outcome of the task is
// known, so later failures are events too.
func (s *Server) streamTranscription(w http.ResponseWriter, r *request, id string, form *openai.Form) error {
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
		result, err := s.finished(ctx, r, id)
		answers <- answer{result, err}
	}()
	said := spoken{stream: stream, speech: form.Speech()}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if stream.beat() != nil {
				return nil // the client has disconnected; the task continues
			}
		case state := <-states:
			if said.tell(state.Live) != nil {
				return nil
			}
		case a := <-answers:
			if a.err != nil {
				failure := s.translate(a.err)
				s.log.Info("streamed transcription failed", "request", r.id, "task", id, "error_code", failure.Code, "error", failure.Error())
				_ = stream.send("", "", failure.openAI())
				return nil
			}
			if err := said.end(a.result); err != nil {
				s.log.Debug("client left a stream", "request", r.id, "error", err)
			}
			return nil
		}
	}
}

// spoken holds the state of a streamed transcription.
type spoken struct {
	stream *eventStream
	speech *openai.Speech
	told   teller
}

// tell sends deltas of sentences of the running task. Sentences of another
// attempt are compared with the result at the end.
func (s *spoken) tell(told *tasks.LiveSegments) error {
	if s.speech.Waits() || told == nil || s.told.attempt != 0 && told.Attempt != s.told.attempt {
		return nil
	}
	_, news := s.told.more(told)
	for _, seg := range news {
		if event := s.speech.Sentence(seg); event != nil {
			if err := s.stream.send("", "", event); err != nil {
				return err
			}
		}
	}
	return nil
}

// end sends the rest of the result, and the whole text.
func (s *spoken) end(result spec.Result) error {
	for _, event := range s.speech.End(result) {
		if err := s.stream.send("", "", event); err != nil {
			return err
		}
	}
	return nil
}
