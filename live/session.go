// Package live transcribes sound while it is being spoken.
//
//	s, err := live.Open(ctx, p, live.Options{})
//	if err != nil { … }
//	go func() {
//		for e, err := range s.Events() { … }
//	}()
//	err = s.Write(samples) // 16 kHz, mono
//	…
//	res, err := s.Close()
//
// A session finds utterances by their pauses. While one continues, its text so
// far comes every few tenths of a second; when it has ended, its final text is
// the text of the same speech in a recording. Close returns the result of the
// whole recording, with the speakers of Pipeline.Run.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
)

// Event is a report of a session.
type Event = spec.LiveEvent

// ErrClosed is returned by Write and Commit after Close.
var ErrClosed = errors.New("the live session is closed")

// Options configures a session. The zero value is valid.
type Options struct {
	// Options are the options of a run. EnableASR must not be false, and
	// AudioTrack has no effect. The result of Close has at least MinSpeakers and
	// exactly NumSpeakers; events have at most NumSpeakers or MaxSpeakers.
	otograph.Options
	// Extras are further options of a run.
	Extras spec.Extras
	// Voices are known voices, as in otograph.RunOptions.
	Voices []otograph.KnownVoice
	// Revisable lets each Partial have all text that was recognized, although
	// the next one may revise it. Otherwise text only grows: a Partial has the
	// text on which two recognitions agree (with Careful, or for a last word of
	// nearly the same sound, three; in a pause, one) or, of a streaming model
	// without hotwords, the text before the last word. With Careful, text is later
	// by the time of a recognition, and less often wrong.
	Revisable, Careful bool
	// Silence is the pause, in seconds, that ends an utterance: 0.1 to 10; 0
	// means 0.8 in the standard tier and 0.5 in the optimized one. Below 0.5,
	// the standard tier has less sound after the last word than in a recording.
	Silence float64
	// Manual makes only Commit, and the longest utterance, end an utterance.
	Manual bool
	// TempDir is the folder of the unnamed file that keeps the sound for the
	// speakers of the result; "" is the system's temporary folder. Without
	// EnableDiarize no sound is kept.
	TempDir string
}

// silences are the pauses, in seconds, that end an utterance unless an option
// sets the pause. The standard tier has as few errors as in a recording only if
// it gets the lines of a verse together; the optimized tier also decodes them
// one by one in a recording.
var silences = map[spec.Tier]float64{spec.TierStandard: 0.8, spec.TierOptimized: 0.5}

// sketchIdle is how often, in samples, an open utterance is recognized if no
// session has other work.
var sketchIdle = map[spec.Tier]int{spec.TierStandard: audio.SampleRate * 3 / 10, spec.TierOptimized: audio.SampleRate * 19 / 100}

const (
	// longestUtterance is in samples; whisper's windows have 30 s.
	longestUtterance = 28 * audio.SampleRate
	// shortestPart is the least length of an utterance that is divided.
	shortestPart = 10 * audio.SampleRate
	// around is the sound around an utterance that recognizers may read.
	around = audio.SampleRate
	// sketchEvery is how often an open utterance is recognized, and leastSketch
	// the least length of one.
	sketchEvery = audio.SampleRate * 2 / 5
	leastSketch = audio.SampleRate / 2
	// sameSound is the new sound below which a recognition may mistake the same
	// part of a word for a word as the previous one did.
	sameSound = audio.SampleRate * 3 / 10
	// shortestPause is the least pause (seconds) at which the voice activity
	// detector cuts an utterance of the longest length: one of its windows.
	shortestPause = 0.031
)

// Session is one live transcription. Its methods may be called concurrently.
type Session struct {
	opt    Options // Change changes it with mu held
	run    *stages.Session
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   *client
	leave  func()
	tape   audio.Tape
	wake   chan struct{}
	done   chan struct{} // closed when follow has ended

	mu             sync.Mutex
	more           *sync.Cond // signals events, and the end
	events         []Event
	closing, ended bool
	err            error
	marks          []mark // that have not been done
	once           sync.Once
	result         *otograph.Result

	follower
	text recognized
}

// Open starts a session with the models of a pipeline. Close must be called,
// also after an error and after ctx has ended, which ends the session's work.
func Open(ctx context.Context, p *otograph.Pipeline, opt Options) (*Session, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if opt.EnableASR != nil && !*opt.EnableASR {
		return nil, &spec.OptionError{Field: "enable_asr", Reason: "must not be false in a live session"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	run, ctx, err := stages.OpenSession(ctx, p, opt.Options, otograph.RunOptions{Extras: opt.Extras, Voices: opt.Voices})
	if err != nil {
		cancel(nil)
		return nil, err
	}
	s := &Session{opt: opt, run: run, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	if err := s.prepare(); err != nil {
		s.release()
		run.End()
		cancel(nil)
		return nil, err
	}
	s.work, s.leave = join(p, run.Cores)
	go s.follow()
	return s, nil
}

// Write adds samples: mono, 16 kHz, -1 to 1. It never waits for a model. After an error
// of the session it returns that error.
func (s *Session) Write(samples []float32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refused(); err != nil {
		return err
	}
	s.tape.Append(samples)
	backoff.Signal(s.wake)
	return nil
}

func (o *Options) check() error {
	if !(o.Silence >= 0.1 && o.Silence <= 10 || o.Silence == 0) {
		return &spec.OptionError{Field: "silence", Reason: fmt.Sprintf("must be 0.1 to 10 seconds, got %v", o.Silence)}
	}
	return nil
}

// Change takes Silence, Manual, Careful, ASRLanguage, Hotwords, InitialPrompt and
// Extras.Languages from opt, for the text that is recognized from now on.
func (s *Session) Change(opt Options) error {
	if err := opt.check(); err != nil {
		return err
	}
	if _, err := opt.Effective(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refused(); err != nil {
		return err
	}
	mine := &s.opt
	languages := func(o *Options) []string {
		return append([]string{*cmp.Or(o.ASRLanguage, new(""))}, o.Extras.Languages...)
	}
	if !slices.Equal(languages(mine), languages(&opt)) {
		s.text.mu.Lock()
		s.text.lang, s.text.sure = stages.Language{}, false // the language is detected again
		s.text.mu.Unlock()
	}
	mine.Silence, mine.Manual, mine.Careful, mine.Extras.Languages = opt.Silence, opt.Manual, opt.Careful, opt.Extras.Languages
	mine.ASRLanguage, mine.Hotwords, mine.InitialPrompt = opt.ASRLanguage, opt.Hotwords, opt.InitialPrompt
	return nil
}

type mark struct {
	position int
	drop     bool
}

// Commit ends the utterance that continues, if there is one, with the sound that
// has been written. An event LiveCommitted follows.
func (s *Session) Commit() error { return s.mark(false) }

// Discard drops the utterance that continues, if there is one: it gets no text.
// An event LiveCleared follows.
func (s *Session) Discard() error { return s.mark(true) }

func (s *Session) mark(drop bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refused(); err != nil {
		return err
	}
	s.marks = append(s.marks, mark{s.tape.Len(), drop})
	backoff.Signal(s.wake)
	return nil
}

// refused returns the error of a method after the session's or the sound's end.
func (s *Session) refused() error {
	if s.err != nil {
		return s.err
	}
	if s.closing {
		return ErrClosed
	}
	return context.Cause(s.ctx)
}

// Events yields the events until the session has ended, and then its error, if
// there was one. Each event is yielded once; after a loop that ended early,
// another one yields the others. Events wait in memory until they are yielded.
func (s *Session) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			s.mu.Lock()
			for len(s.events) == 0 && !s.ended && s.err == nil {
				s.more.Wait()
			}
			if len(s.events) == 0 {
				err := s.err
				s.mu.Unlock()
				if err != nil {
					yield(Event{}, err)
				}
				return
			}
			e := s.events[0]
			s.events = s.events[1:]
			s.mu.Unlock()
			if !yield(e, nil) {
				return
			}
		}
	}
}

// emit adds an event; s.mu is held.
func (s *Session) emit(e Event) {
	if e.End > 0 {
		e.Behind = max(0, math.Round(1000*(float64(s.tape.Len())/audio.SampleRate-e.End))/1000)
	}
	if e.Kind == spec.LivePartial || e.Kind == spec.LiveFinal {
		e.Dropped = int(s.dropped.Swap(0))
	}
	e.Start, e.End = seconds(e.Start), seconds(e.End)
	s.events = append(s.events, e)
	s.more.Broadcast()
}

// seconds rounds a time as results do.
func seconds(t float64) float64 { return math.Round(t*100) / 100 }

// Behind returns the seconds of written sound outside the open utterance whose
// text is not recognized yet, or whose sound events wait.
func (s *Session) Behind() float64 {
	at := s.work.done(int(s.position.Load()))
	return float64(s.tape.Len()-at) / audio.SampleRate
}

func (s *Session) fail(err error) {
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
	s.cancel(err)
	s.more.Broadcast()
}

// Close ends the sound, waits for its remaining text and returns the result, as
// Pipeline.Run does: its speakers come from the whole recording, so they may
// differ from the events' speakers. The sentences are those of the Final
// events. It may be called more than once.
func (s *Session) Close() (*otograph.Result, error) {
	s.once.Do(func() {
		s.mu.Lock()
		s.closing = true
		backoff.Signal(s.wake)
		s.mu.Unlock()
		<-s.done
		s.work.work.Wait()
		if s.err == nil {
			res, err := s.whole()
			if err != nil {
				s.fail(err)
			}
			s.result = res
		}
		s.leave()
		s.release()
		s.run.End()
		s.mu.Lock()
		s.ended = true
		s.more.Broadcast()
		s.mu.Unlock()
		s.cancel(ErrClosed)
	})
	return s.result, s.err
}

func (s *Session) whole() (*otograph.Result, error) {
	f := &stages.Findings{Speech: &stages.Speech{Spans: slices.Concat(s.speech...), Probabilities: s.probs, Windows: len(s.probs)}, Transcription: s.text.all}
	if s.sounds != nil {
		f.Sounds = &s.sounds.Sounds
	}
	pcm := s.tape.Section(s.tape.Len(), s.tape.Len())
	if s.recorder != nil {
		kept, err := s.recorder.PCM()
		s.recorder = nil
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		pcm = kept
		sides := []stages.Side{{Channel: stages.Mix, Speech: f.Speech}}
		voices, err := s.run.EmbedSides(s.ctx, stages.Recording{PCM: pcm}, sides)
		if err != nil {
			return nil, err
		}
		f.VoiceWindows = len(voices[stages.Mix].Windows)
		if f.Speakers, err = s.run.ClusterSides(s.ctx, sides, voices, f.Transcription); err != nil {
			return nil, err
		}
	}
	if f.Transcription.Tier == "" { // without speech, language and tier are as in a recording
		st := s.stages(1)
		if l, err := st.FindLanguage(s.ctx, pcm, nil); err == nil {
			if f.Transcription, err = st.Transcribe(s.ctx, pcm, &stages.Speech{}, l, stages.Reports{}); err != nil {
				return nil, err
			}
		}
	}
	return s.run.Result(pcm, f), nil
}
