package live

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

// recognized holds the text and the voices of a session. Only the work of a
// Final, one at a time, changes it.
type recognized struct {
	all    *stages.Transcription // of all utterances
	voices *diarize.Online       // nil without speakers
	spoken atomic.Bool           // some text was kept: the session has speech
	count  int                   // sentences of all Finals

	mu   sync.Mutex
	lang stages.Language
	sure bool // lang is settled
}

// sureLanguage is the probability from which a detected language is settled:
// such a language is more likely than all others together.
const sureLanguage = 0.5

// language returns the language of the session, or detects it in some speech.
// Only the language of a whole utterance can settle it.
func (s *Session) language(st *stages.Stages, pcm *audio.PCM, spans []audio.Span, whole bool) (stages.Language, error) {
	r := &s.text
	r.mu.Lock()
	l, sure := r.lang, r.sure
	r.mu.Unlock()
	if sure || !whole && l.Code != "" {
		return l, nil
	}
	l, err := st.FindLanguage(s.ctx, pcm, spans)
	if err != nil {
		return l, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if whole || r.lang.Code == "" { // not an earlier Partial, whose recognition may be slower than the Final
		r.lang, r.sure = l, whole && l.Probability >= sureLanguage
	}
	return l, nil
}

// stages returns the session's stages for work on some cores.
func (s *Session) stages(cores int) *stages.Stages {
	st := *s.run.Stages
	st.Cores, st.Spoken = cores, s.text.spoken.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	opt := &s.opt
	st.Among, st.Options.ASRLanguage, st.Options.Hotwords, st.Options.InitialPrompt = opt.Extras.Languages, opt.ASRLanguage, opt.Hotwords, opt.InitialPrompt
	return &st
}

// sketch recognizes an open utterance from its start so far, and shows the text
// that options allow.
func (s *Session) sketch(u *utterance, start int, resting bool, cores int) {
	s.mu.Lock()
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	skip := u.ended || ctx.Err() != nil
	u.stop = stop
	s.mu.Unlock()
	if skip {
		return
	}
	st := s.stages(cores)
	speech := audio.Span{Start: start, End: int(s.position.Load())}
	sound := s.tape.Section(max(start-around, u.after), speech.End)
	l, err := s.language(st, sound, []audio.Span{speech}, false)
	if err == nil {
		var t *asr.Transcript
		if t, err = st.Sketch(ctx, sound, []audio.Span{speech}, asr.Draft{Text: u.last, Open: !resting, State: u.state}, l); err == nil {
			if !resting {
				u.state, u.grows = t.State, t.Grows
			}
			s.show(u, joined(t.Segments), speech, resting)
			return
		}
	}
	if ctx.Err() == nil {
		s.fail(err)
	}
}

// show emits the Partial of a recognition, if there is something new. In a
// pause one recognition is enough, because another would have no more sound. A
// text that loops is not shown: the next recognition will have the words.
func (s *Session) show(u *utterance, text string, speech audio.Span, resting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.ended || loops(text) {
		return
	}
	next := text
	if !s.opt.Revisable {
		next = agreed(text, text)
		if !resting {
			next = u.agreed(text, speech.End, s.opt.Careful)
		}
		next, _ = grown(u.shown, next)
	}
	u.earlier, u.last, u.end = u.last, text, speech.End
	if next == u.shown {
		return
	}
	u.shown = next
	start, end := speech.Seconds()
	s.emit(Event{Kind: spec.LivePartial, Utterance: u.id, Start: start, End: end, Text: next})
}

func joined(list []asr.Segment) (text string) {
	for _, seg := range list {
		text += spec.Separated(text, seg.Text)
	}
	return text
}

// decode recognizes an utterance that has ended, and its speakers.
func (s *Session) decode(u *utterance, sound *audio.PCM, speech *stages.Speech, cores int) {
	if s.ctx.Err() != nil {
		return
	}
	st := s.stages(cores)
	var voices *diarize.Embeddings
	var embedding sync.WaitGroup
	var failed error
	if s.text.voices != nil {
		embedding.Go(func() { voices, failed = st.Embed(s.ctx, sound, speech, true) })
	}
	l, err := s.language(st, sound, speech.Spans, true)
	var t *stages.Transcription
	if err == nil {
		t, err = st.Transcribe(s.ctx, sound, speech, l, stages.Reports{})
	}
	embedding.Wait()
	if err = cmp.Or(err, failed); err != nil {
		s.fail(err)
		return
	}
	s.text.add(t)
	f := &stages.Findings{Transcription: t}
	if voices != nil && len(t.Transcript.Segments) > 0 {
		turns := s.text.voices.Add(voices)
		f.Speakers = &diarize.Result{Turns: turns, Exclusive: turns}
	}
	s.final(u, sound, f)
}

// add appends the text of an utterance to the session's text.
func (r *recognized) add(t *stages.Transcription) {
	all := r.all
	stats := all.Transcript.Stats
	stats.Add(t.Transcript.Stats)
	segments := append(all.Transcript.Segments, t.Transcript.Segments...)
	if t.Language.Probability >= all.Language.Probability {
		all.Language, all.Tier = t.Language, t.Tier
	}
	if t.Abilities != nil {
		all.Abilities = t.Abilities
		all.Transcript.Ineffective, all.Transcript.Unspelled = t.Transcript.Ineffective, t.Transcript.Unspelled
	}
	all.Transcript.Language, all.Transcript.Stats, all.Transcript.Segments = all.Language.Code, stats, segments
	if len(segments) > 0 {
		r.spoken.Store(true)
	}
}

// final emits the Final of an utterance, and then the earlier speech whose speaker
// has changed.
func (s *Session) final(u *utterance, sound *audio.PCM, f *stages.Findings) {
	segments := s.run.Segments(f, sound)
	for i := range segments {
		segments[i].ID = s.text.count + i
	}
	s.text.count += len(segments)
	start, _ := u.spans[0].Seconds()
	_, end := u.spans[len(u.spans)-1].Seconds()
	e := Event{Kind: spec.LiveFinal, Utterance: u.id, Start: start, End: end, Text: joined(f.Transcription.Transcript.Segments), Segments: segments, Names: s.names()}
	if len(segments) > 0 {
		e.Language = f.Transcription.Language.Code
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opt.Revisable {
		e.Text, e.Kept = grown(u.shown, e.Text)
	}
	s.emit(e)
	if f.Speakers == nil {
		return
	}
	for _, c := range s.text.voices.Changes() {
		start, end := c.Seconds()
		s.emit(Event{Kind: spec.LiveSpeakerChanged, Start: start, End: end, From: spec.SpeakerName(c.From), To: spec.SpeakerName(c.To)})
	}
}

// names returns the known voices among the speakers.
func (s *Session) names() map[string]string {
	if s.text.voices == nil || len(s.run.Known.Voices) == 0 {
		return nil
	}
	return s.run.Names(s.run.Known, &stages.Findings{Speakers: &diarize.Result{Speakers: s.text.voices.Speakers()}})
}
