package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/spec"
)

// realtimeRate is the sample rate of OpenAI's realtime interface, in Hz.
const realtimeRate = 24000

// errRest ends a session that misses something after the sound.
var errRest = errors.New("a turn has no text 20 s after the sound")

// realtime is a session of a server with OpenAI's realtime interface, of the
// type transcription: a bench.LiveStream. The server decides where a turn ends; a
// turn is an utterance of the events.
type realtime struct {
	ctx       context.Context
	end       context.CancelCauseFunc
	conn      *websocket.Conn
	resampler *audio.Resampler
	samples   atomic.Int64 // that have been written
	closing   atomic.Bool  // Close commits the rest of the sound

	// Of Events.
	begun  int                        // turns
	turns  map[string]*spec.LiveEvent // the last event of each turn without a text
	rest   bool                       // the server has answered the commit of Close
	result otograph.Result
	done   chan struct{} // closed when the session ends
}

type realtimeMessage struct {
	Type       string                          `json:"type"`
	Item       string                          `json:"item_id"`
	Start      float64                         `json:"audio_start_ms"`
	End        float64                         `json:"audio_end_ms"`
	Delta      string                          `json:"delta"`
	Transcript string                          `json:"transcript"`
	Error      *struct{ Code, Message string } `json:"error"`
}

// openRealtime begins a session with the server at an address, such as
// ws://host:8000/v1/realtime?intent=transcription&model=base. key, unless it is
// empty, is sent as a bearer token; a nil language is detected. Close must be
// called.
func openRealtime(ctx context.Context, address, key string, language *string) (_ *realtime, err error) {
	r := &realtime{turns: map[string]*spec.LiveEvent{}, done: make(chan struct{})}
	r.ctx, r.end = context.WithCancelCause(ctx)
	r.result.Ran.ASR = true
	r.resampler, _ = audio.NewResampler(audio.SampleRate, realtimeRate) // which are rates
	defer time.AfterFunc(time.Minute, func() { r.end(errors.New("no session.updated within a minute")) }).Stop()
	var opt websocket.DialOptions
	if key != "" {
		opt.HTTPHeader = http.Header{"Authorization": {"Bearer " + key}}
	}
	if r.conn, _, err = websocket.Dial(r.ctx, address, &opt); err != nil { //nolint:bodyclose // Dial leaves nothing to close
		return nil, err
	}
	r.conn.SetReadLimit(1 << 22)
	u, _ := url.Parse(address) // as Dial has
	type object = map[string]any
	transcription := object{"model": cmp.Or(u.Query().Get("model"), "whisper-1")}
	if language != nil {
		transcription["language"] = *language
	}
	err = wsjson.Write(r.ctx, r.conn, object{"type": "session.update", "session": object{"type": "transcription", "audio": object{"input": object{
		"format": object{"type": "audio/pcm", "rate": realtimeRate}, "transcription": transcription, "turn_detection": object{"type": "server_vad"},
	}}}})
	for m := (realtimeMessage{}); err == nil && m.Type != "session.updated"; {
		m, err = r.receive()
	}
	if err != nil {
		_ = r.conn.CloseNow()
		return nil, err
	}
	return r, nil
}

// receive returns the server's next message. Errors end the session, except
// OpenAI's error for the commit of an empty buffer.
func (r *realtime) receive() (m realtimeMessage, err error) {
	if err = wsjson.Read(r.ctx, r.conn, &m); err != nil {
		err = cmp.Or(context.Cause(r.ctx), fmt.Errorf("the session ended early: %w", err))
	} else if m.Error != nil && m.Error.Code != "input_audio_buffer_commit_empty" {
		err = fmt.Errorf("%s: %s: %.200q", m.Type, m.Error.Code, m.Error.Message)
	}
	if err != nil {
		r.end(err)
	}
	return m, err
}

// Write implements bench.LiveStream.
func (r *realtime) Write(samples []float32) error {
	r.samples.Add(int64(len(samples)))
	pcm := mediafiles.Samples16(r.resampler.Process(nil, samples))
	return wsjson.Write(r.ctx, r.conn, map[string]any{"type": "input_audio_buffer.append", "audio": pcm})
}

// Events implements bench.LiveStream. It ends when all turns have their text after
// Close, and must be read until then.
func (r *realtime) Events() iter.Seq2[spec.LiveEvent, error] {
	return func(yield func(spec.LiveEvent, error) bool) {
		defer close(r.done)
		for !r.rest || len(r.turns) > 0 {
			m, err := r.receive()
			if err != nil {
				if len(r.turns) > 0 || !errors.Is(err, errRest) { // some servers do not answer the commit of silence
					yield(spec.LiveEvent{}, err)
				}
				return
			}
			if e := r.take(m); e.Kind != "" && !yield(e, nil) {
				return
			}
		}
	}
}

// take records a message in its turn, and returns the message's event, if any.
func (r *realtime) take(m realtimeMessage) (e spec.LiveEvent) {
	r.rest = r.rest || m.Error != nil
	if m.Item == "" {
		return e
	}
	turn := r.turns[m.Item]
	if turn == nil {
		turn = &spec.LiveEvent{Utterance: r.begun}
		r.turns[m.Item] = turn
		r.begun++
	}
	switch m.Type {
	case "input_audio_buffer.speech_started":
		turn.Kind, turn.Start = spec.LiveSpeechStarted, m.Start/1000
	case "input_audio_buffer.speech_stopped":
		turn.Kind, turn.End = spec.LiveSpeechStopped, m.End/1000
	case "input_audio_buffer.committed":
		turn.Kind = spec.LiveCommitted
		if turn.End == 0 { // otherwise the server has ended the turn
			turn.End = float64(r.samples.Load()) / audio.SampleRate
			r.rest = r.rest || r.closing.Load()
		}
	case "conversation.item.input_audio_transcription.delta":
		turn.Kind, turn.Text = spec.LivePartial, turn.Text+m.Delta
	case "conversation.item.input_audio_transcription.completed":
		turn.Kind, turn.Text = spec.LiveFinal, m.Transcript
		turn.Segments = []spec.Segment{{Start: turn.Start, End: turn.End, Text: turn.Text}}
		r.result.Segments = append(r.result.Segments, turn.Segments...)
		delete(r.turns, m.Item)
	default:
		return e
	}
	return *turn
}

// Close commits the rest of the sound, waits until Events has ended, and returns
// the texts of all turns in the order in which they came.
func (r *realtime) Close() (*otograph.Result, error) {
	r.closing.Store(true)
	_ = wsjson.Write(r.ctx, r.conn, map[string]string{"type": "input_audio_buffer.commit"}) // Events has the error
	defer time.AfterFunc(20*time.Second, func() { r.end(errRest) }).Stop()
	<-r.done
	_ = r.conn.Close(websocket.StatusNormalClosure, "") // the server may be gone
	r.end(nil)
	r.result.AudioDuration = float64(r.samples.Load()) / audio.SampleRate
	return &r.result, nil
}
