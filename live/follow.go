package live

import (
	"cmp"
	"errors"
	"math"
	"sync/atomic"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// follower is the state of a session's goroutine, which finds utterances.
type follower struct {
	model    vad.WindowModel
	level    *audio.RisingLevel
	stream   *vad.Stream
	recorder *audio.Recorder     // nil without speakers
	sounds   *stages.SoundStream // nil without sound events

	at       int          // samples that the detector has processed
	position atomic.Int64 // at, for others
	dropped  atomic.Int64 // sketches since the last Partial or Final
	raised   []float32
	probs    []byte         // probabilities of speech, as stages.Speech holds them
	speech   [][]audio.Span // of all utterances
	stopped  int            // where the last utterance ended
	current  *utterance     // nil in a pause
	count    int            // utterances so far
}

// utterance is speech without a long pause.
type utterance struct {
	id, start int
	after     int          // the end of the previous utterance
	spans     []audio.Span // that have ended
	sketched  int          // where the sound of the last recognition ended
	rested    bool         // that was in the pause that continues
	ended     bool         // no Partial may follow; Session.mu is held, as for stop
	stop      func()       // ends the recognition of the text so far; nil before the first one
	last      string       // the last recognition
	state     any          // of the recognizer, to continue the text; nil if it cannot
	grows     bool         // whether the text of state only continues
	end       int          // of the last recognition's sound
	earlier   string       // the recognition before
	shown     string       // the text of the last Partial
}

// prepare opens the models and streams of a session.
func (s *Session) prepare() (err error) {
	m, err := s.run.Engines.VAD()
	if err != nil {
		return err
	}
	streamer, ok := m.(vad.Streamer)
	if !ok {
		return errors.New("voice activity: the model cannot follow a sound that grows")
	}
	if s.model, err = streamer.Stream(); err != nil {
		return err
	}
	s.level = audio.NewRisingLevel(vad.Window)
	opt := s.run.SpeechOptions()
	opt.MaxSpeech, opt.MinSilenceAtMax = float64(longestUtterance)/audio.SampleRate, shortestPause
	if s.stream, err = vad.NewStream(&s.tape, opt); err != nil {
		return err
	}
	if *s.run.Options.EnableAudioEvents {
		if s.sounds, err = s.run.SoundStream(); err != nil {
			return err
		}
	}
	if *s.run.Options.EnableDiarize {
		if s.text.voices, err = s.run.Online(); err != nil {
			return err
		}
		s.recorder, err = audio.NewRecorder(s.opt.TempDir)
	}
	s.text.all = &stages.Transcription{Transcript: &asr.Transcript{}}
	return err
}

// release frees what prepare opened.
func (s *Session) release() {
	if s.model != nil {
		_ = s.model.Close()
	}
	if s.recorder != nil {
		_ = s.recorder.Close()
	}
}

// follow processes the sound as it is written.
func (s *Session) follow() {
	defer close(s.done)
	for {
		s.mu.Lock()
		n, marks, closing := s.tape.Len(), s.marks, s.closing
		s.mu.Unlock()
		until := n
		if len(marks) > 0 {
			until = marks[0].position
		}
		for s.at+vad.Window <= until && s.ctx.Err() == nil {
			if err := s.hear(s.tape.Samples(s.at, s.at+vad.Window)); err != nil {
				s.fail(err)
				return
			}
		}
		switch {
		case s.ctx.Err() != nil:
			s.fail(s.ctx.Err())
			return
		case len(marks) > 0:
			s.cut(marks[0])
		case closing:
			if err := s.finish(n); err != nil {
				s.fail(err)
			}
			return
		default:
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
		}
	}
}

// hear passes the next window of sound to the detector.
func (s *Session) hear(window []float32) error {
	s.raised = s.level.Raise(s.raised[:0], window)
	p, err := s.model.Next(s.raised)
	if err != nil {
		return err
	}
	if s.recorder != nil {
		if err := s.recorder.Write(window); err != nil {
			return err
		}
	}
	s.at += len(window)
	s.position.Store(int64(s.at))
	s.probs = append(s.probs, stages.Coarse(p))
	s.take(s.stream.Feed([]float32{p}))
	s.advance()
	s.tag(false)
	if len(s.probs)%32 == 0 {
		s.forget()
	}
	return nil
}

// take adds segments of speech to the utterance.
func (s *Session) take(segments []vad.Segment) {
	for _, seg := range segments {
		if s.current == nil {
			s.begin(seg.Start)
		}
		s.current.spans = append(s.current.spans, seg)
	}
}

func (s *Session) begin(start int) {
	s.current = &utterance{id: s.count, start: start, after: s.stopped}
	s.count++
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(Event{Kind: spec.LiveSpeechStarted, Utterance: s.current.id, Start: float64(start) / audio.SampleRate})
}

// advance ends the utterance by its pause or length, or requests its text so far.
func (s *Session) advance() {
	open, settled, certain, speaking := s.stream.Open()
	if s.current == nil {
		if !certain {
			return
		}
		s.begin(open)
	}
	u := s.current
	if len(u.spans) > 0 {
		u.start = u.spans[0].Start
	} else if settled {
		u.start = open
	}
	if n := len(u.spans); n > 0 && !certain && !s.stream.Pending() {
		end, quiet := u.spans[n-1].End, s.at
		if speaking {
			quiet = open
		}
		if pause, ok := s.pause(); ok && quiet >= end+pause {
			s.end(n, math.MaxInt)
			return
		}
	}
	if s.at-u.start > longestUtterance && s.divide(open, settled, speaking) {
		return
	}
	s.sketchNext(u, !speaking, sketchIdle[s.tier()])
}

func (s *Session) tier() spec.Tier {
	s.text.mu.Lock()
	defer s.text.mu.Unlock()
	return s.run.Stages.Tier(s.text.lang)
}

// pause returns the pause that ends an utterance, in samples; not ok with Manual.
func (s *Session) pause() (samples int, ok bool) {
	s.mu.Lock()
	seconds, manual := s.opt.Silence, s.opt.Manual
	s.mu.Unlock()
	return int(cmp.Or(seconds, silences[s.tier()]) * audio.SampleRate), !manual
}

// sketchNext requests the text of an open utterance if it is due: every
// sketchEvery, every idle samples while no work runs, and once in each pause.
func (s *Session) sketchNext(u *utterance, resting bool, idle int) {
	resting = resting && s.at-u.start >= leastSketch
	if u.rested = u.rested && resting; u.rested {
		u.sketched = s.at // there is no new sound
	}
	n := s.due(u, sketchEvery)
	if (n > 0 || resting && !u.rested || s.due(u, idle) > 0 && s.work.free()) && !s.work.pending(partials) {
		s.dropped.Add(int64(max(n-1, 0)))
		u.sketched, u.rested = s.at, resting
		start := u.start
		s.work.do(partials, task{s.at, func(cores int) { s.sketch(u, start, resting, cores) }})
	}
}

// due returns how many recognitions of an open utterance are due, with
// every samples between two.
func (s *Session) due(u *utterance, every int) int {
	return (s.at - max(u.sketched, u.start+leastSketch-every)) / every
}

// divide ends an utterance that is too long at its longest pause, if a pause
// has final borders. open is where speech continues, if it does.
func (s *Session) divide(open int, settled, speaking bool) bool {
	u := s.current
	best, longest, after := 0, -1, 0
	for k, span := range u.spans {
		next := s.at
		switch {
		case k+1 < len(u.spans):
			next = u.spans[k+1].Start
		case settled:
			next = open
		case speaking || s.stream.Pending() || s.at-span.End < around:
			continue
		}
		if pause := next - span.End; pause >= longest && (span.End-u.start >= shortestPart || k+1 == len(u.spans)) {
			best, longest, after = k+1, pause, next
		}
	}
	if best == 0 {
		return false
	}
	s.end(best, after)
	return true
}

// end ends the utterance with its first n spans; the others begin the next one.
// Its recognizers get no sound from before the end of the previous utterance,
// nor from next on, where speech continues: they would write its words.
func (s *Session) end(n, next int) {
	u := s.current
	s.current = nil
	s.dropped.Add(int64(max(0, s.due(u, sketchEvery))))
	rest := u.spans[n:]
	u.spans = u.spans[:n:n]
	s.speech = append(s.speech, u.spans)
	end := u.spans[n-1].End
	s.mu.Lock()
	u.ended = true
	if u.stop != nil {
		u.stop() // the final text has the cores
	}
	s.emit(Event{Kind: spec.LiveSpeechStopped, Utterance: u.id, Start: float64(u.start) / audio.SampleRate, End: float64(end) / audio.SampleRate})
	s.mu.Unlock()
	speech := &stages.Speech{Spans: u.spans, Probabilities: s.probs}
	sound := s.tape.Section(max(u.spans[0].Start-around, u.after), min(end+around, next))
	s.stopped = end
	s.work.do(finals, task{end, func(cores int) { s.decode(u, sound, speech, cores) }})
	s.take(rest)
}

// cut ends the utterance at a mark, or drops it.
func (s *Session) cut(m mark) {
	s.take(s.stream.Cut())
	e := Event{Kind: spec.LiveCommitted, Utterance: -1, Start: float64(m.position) / audio.SampleRate}
	u := s.current
	if u != nil && len(u.spans) == 0 {
		u = nil
	}
	if u != nil {
		e.Utterance = u.id
	}
	switch {
	case m.drop:
		e.Kind, s.current, s.stopped = spec.LiveCleared, nil, s.at
	case u != nil:
		s.end(len(u.spans), math.MaxInt)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.drop && u != nil {
		u.ended = true
	}
	s.marks = s.marks[1:]
	s.emit(e)
}

// finish hears the rest of the sound.
func (s *Session) finish(n int) error {
	if s.at < n {
		if err := s.hear(s.tape.Samples(s.at, n)); err != nil {
			return err
		}
	}
	s.take(s.stream.Flush())
	if s.current != nil && len(s.current.spans) > 0 {
		s.end(len(s.current.spans), math.MaxInt)
	}
	s.tag(true)
	return nil
}

// tag requests the sound events of the new sound or, at the end, of the rest.
func (s *Session) tag(rest bool) {
	if s.sounds == nil {
		return
	}
	length := float64(s.at) / audio.SampleRate
	from, to, ok := s.sounds.Next(s.at, rest)
	if !ok && !rest {
		return
	}
	sound := audio.FromSamples(s.tape.Samples(from, to))
	s.work.do(sounds, task{s.at, func(int) {
		var list []events.Event
		var err error
		if ok && s.ctx.Err() == nil {
			list, err = s.sounds.Push(s.ctx, sound)
		}
		if err != nil {
			s.fail(err)
			return
		}
		if rest {
			list = append(list, s.sounds.Flush(length)...)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range list {
			s.emit(Event{Kind: spec.LiveSound, Start: e.Start, End: e.End, Class: e.Class.DisplayName, Confidence: e.Confidence})
		}
	}})
}

// forget frees the sound that nothing needs any more.
func (s *Session) forget() {
	keep := s.stream.Needed()
	if s.current != nil {
		keep = min(keep, s.current.start)
	}
	keep -= around
	if s.sounds != nil {
		keep = min(keep, s.sounds.First())
	}
	s.tape.Forget(keep)
}
