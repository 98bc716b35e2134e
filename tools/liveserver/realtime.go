package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

const (
	// realtimeRate is the sample rate of OpenAI's realtime interface.
	realtimeRate = 24000
	// longestBegin is how long a server may take to begin a session, and
	// longestRest how late its last text may be after the sound.
	longestBegin, longestRest = time.Minute, 20 * time.Second
	// emptyCommit is the code of the error with which OpenAI answers the commit
	// of a buffer without sound.
	emptyCommit = "input_audio_buffer_commit_empty"
	// longestMessage is the length of the server's longest message, in bytes.
	longestMessage = 1 << 22
)

// errRest ends a session of which something is missing after the sound.
var errRest = fmt.Errorf("a turn has no text %s after the sound", longestRest)

// realtime is a session of a server with OpenAI's realtime interface, of the
// type transcription. The server decides where a turn ends; a turn is an
// utterance of the events.
type realtime struct {
	ctx       context.Context
	end       context.CancelCauseFunc
	conn      *websocket.Conn
	resampler *audio.Resampler
	samples   atomic.Int64 // that have been written
	closing   atomic.Bool  // Close commits the rest of the sound

	// Of Events.
	turns []spec.LiveEvent // the last event of each
	ids   []string         // of the turns
	open  map[string]bool  // turns that have ended and have no text
	rest  bool             // the server has taken the commit of Close
	done  chan struct{}    // closed at its end
}

// realtimeMessage is a message of the server.
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
func openRealtime(ctx context.Context, address, key string, language *string) (*realtime, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	resampler, err := audio.NewResampler(audio.SampleRate, realtimeRate)
	if err != nil {
		return nil, err
	}
	begin, cancel := context.WithTimeoutCause(ctx, longestBegin, fmt.Errorf("no session.updated within %s", longestBegin))
	defer cancel()
	r := &realtime{resampler: resampler, open: map[string]bool{}, done: make(chan struct{})}
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	if r.conn, _, err = websocket.Dial(begin, address, &websocket.DialOptions{HTTPHeader: header}); err != nil { //nolint:bodyclose // Dial leaves nothing to close
		return nil, err
	}
	r.conn.SetReadLimit(longestMessage)
	type object = map[string]any
	transcription := object{"model": cmp.Or(u.Query().Get("model"), "whisper-1")}
	if language != nil {
		transcription["language"] = *language
	}
	err = wsjson.Write(begin, r.conn, object{"type": "session.update", "session": object{"type": "transcription", "audio": object{"input": object{
		"format": object{"type": "audio/pcm", "rate": realtimeRate}, "transcription": transcription, "turn_detection": object{"type": "server_vad"},
	}}}})
	for m := (realtimeMessage{}); err == nil && m.Type != "session.updated"; {
		m, err = r.receive(begin)
	}
	if err != nil {
		_ = r.conn.CloseNow()
		return nil, cmp.Or(context.Cause(begin), err)
	}
	r.ctx, r.end = context.WithCancelCause(ctx)
	return r, nil
}

// receive returns the server's next message, unless that tells an error.
func (r *realtime) receive(ctx context.Context) (m realtimeMessage, err error) {
	if err := wsjson.Read(ctx, r.conn, &m); err != nil {
		return m, fmt.Errorf("the session ended early: %w", err)
	}
	if m.Error != nil && m.Error.Code != emptyCommit {
		return m, fmt.Errorf("%s: %s: %.200q", m.Type, m.Error.Code, m.Error.Message)
	}
	return m, nil
}

// Write sends samples: mono, 16 kHz.
func (r *realtime) Write(samples []float32) error {
	r.samples.Add(int64(len(samples)))
	var pcm []byte
	for _, x := range r.resampler.Process(nil, samples) {
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(max(-1, min(1, x))*math.MaxInt16)))
	}
	return wsjson.Write(r.ctx, r.conn, map[string]any{"type": "input_audio_buffer.append", "audio": pcm})
}

// Events yields the events until all turns have their text after Close, and then
// an error, if there was one. It must be read until then.
func (r *realtime) Events() iter.Seq2[spec.LiveEvent, error] {
	return func(yield func(spec.LiveEvent, error) bool) {
		defer close(r.done)
		for !r.rest || len(r.open) > 0 {
			m, err := r.receive(r.ctx)
			if err != nil {
				err = cmp.Or(context.Cause(r.ctx), err)
				r.end(err)
				// some servers answer nothing to the commit of silence
				if len(r.open) > 0 || !errors.Is(err, errRest) {
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

// take notes a message in its turn, and returns its event, if it is one.
func (r *realtime) take(m realtimeMessage) spec.LiveEvent {
	r.rest = r.rest || m.Error != nil
	i := slices.Index(r.ids, m.Item)
	if i < 0 {
		i = len(r.ids)
		r.ids, r.turns = append(r.ids, m.Item), append(r.turns, spec.LiveEvent{Utterance: i})
	}
	e := &r.turns[i]
	switch m.Type {
	case "input_audio_buffer.speech_started":
		e.Kind, e.Start = spec.LiveSpeechStarted, m.Start/1000
	case "input_audio_buffer.speech_stopped":
		e.Kind, e.End, r.open[m.Item] = spec.LiveSpeechStopped, m.End/1000, true
	case "input_audio_buffer.committed":
		if !r.open[m.Item] { // otherwise the server has ended the turn
			e.End = float64(r.samples.Load()) / audio.SampleRate
			r.rest = r.rest || r.closing.Load()
		}
		e.Kind, r.open[m.Item] = spec.LiveCommitted, true
	case "conversation.item.input_audio_transcription.delta":
		e.Kind, e.Text = spec.LivePartial, e.Text+m.Delta
	case "conversation.item.input_audio_transcription.completed":
		e.Kind, e.Text = spec.LiveFinal, m.Transcript
		e.Segments = []spec.Segment{{Start: e.Start, End: e.End, Text: e.Text}}
		delete(r.open, m.Item)
	default:
		return spec.LiveEvent{}
	}
	return *e
}

// Close commits the rest of the sound, waits until Events has ended, and returns
// the texts of all turns.
func (r *realtime) Close() (*otograph.Result, error) {
	r.closing.Store(true)
	_ = wsjson.Write(r.ctx, r.conn, map[string]string{"type": "input_audio_buffer.commit"}) // Events has the error
	timer := time.AfterFunc(longestRest, func() { r.end(errRest) })
	<-r.done
	timer.Stop()
	_ = r.conn.Close(websocket.StatusNormalClosure, "") // the server may be gone
	r.end(nil)
	res := &otograph.Result{Ran: spec.Capabilities{ASR: true}, AudioDuration: float64(r.samples.Load()) / audio.SampleRate}
	for _, e := range r.turns {
		res.Segments = append(res.Segments, e.Segments...)
	}
	return res, nil
}
