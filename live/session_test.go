package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

var demoConfig = otograph.Config{OptimizedWords: true, Cores: 2}

// demonstration is the pipeline that the tests share, because loading the models
// takes longer than most sessions.
var demonstration = sync.OnceValues(func() (*otograph.Pipeline, error) { return otograph.Open(demo.Models(), demoConfig) })

func demoPipeline(t testing.TB) *otograph.Pipeline {
	t.Helper()
	p, err := demonstration()
	require.NoError(t, err)
	if err := p.Load(t.Context(), models.RoleVAD); err != nil {
		t.Skip(err) // without the native libraries
	}
	return p
}

func decoded(t testing.TB, path string) *audio.PCM {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pcm.Close()) })
	return pcm
}

// tiers are the options of both tiers.
func tiers() map[string]otograph.Options {
	return map[string]otograph.Options{
		"standard":  {Optimize: new(false), EnableDiarize: new(false), EnableAudioEvents: new(false)},
		"optimized": {Optimize: new(true), EnableDiarize: new(false), EnableAudioEvents: new(false)},
	}
}

// play writes a recording in pieces, some of which it waits for, and returns the
// events, by kind.
func play(t testing.TB, s *Session, pcm *audio.PCM, piece func() (samples int, pause bool)) (map[spec.LiveKind][]Event, *otograph.Result) {
	t.Helper()
	events := map[spec.LiveKind][]Event{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for e, err := range s.Events() {
			assert.NoError(t, err)
			events[e.Kind] = append(events[e.Kind], e)
		}
	}()
	for at := 0; at < pcm.Len(); {
		n, pause := piece()
		require.NoError(t, s.Write(pcm.Samples(at, at+n)))
		at += n
		if pause {
			s.settle()
		}
	}
	res, err := s.Close()
	require.NoError(t, err)
	<-read
	return events, res
}

func pieces(n int) func() (int, bool) { return func() (int, bool) { return n, n == 4000 } }

// settle waits until the session has nothing left to do.
func (s *Session) settle() {
	for s.Behind() >= 1 && s.ctx.Err() == nil || s.work.pending(partials) || s.work.pending(sounds) || s.work.pending(finals) {
		time.Sleep(time.Millisecond)
	}
}

// offline returns the text of an utterance in the whole recording.
func offline(t testing.TB, run *stages.Session, pcm *audio.PCM, s *Session, spans []audio.Span, spoken bool) []asr.Segment {
	t.Helper()
	st := *run.Stages
	st.Spoken = spoken
	text, err := st.Transcribe(context.Background(), pcm, &stages.Speech{Spans: spans, Probabilities: s.probs}, s.text.lang, stages.Reports{})
	require.NoError(t, err)
	return text.Transcript.Segments
}

// checkFinals compares the Finals with the text of the same speech in the whole
// recording, byte for byte.
func checkFinals(t testing.TB, p *otograph.Pipeline, s *Session, opt otograph.Options, pcm *audio.PCM, finals []Event) (words int) {
	t.Helper()
	run, _, err := stages.OpenSession(t.Context(), p, opt, otograph.RunOptions{})
	require.NoError(t, err)
	defer run.End()
	require.Len(t, finals, len(s.speech), "each utterance has its Final")
	spoken, before := false, 0
	var tape audio.Tape
	tape.Append(pcm.Samples(0, pcm.Len()))
	for i, spans := range s.speech {
		next := pcm.Len()
		if i+1 < len(s.speech) {
			next = s.speech[i+1][0].Start
		}
		want := offline(t, run, tape.Section(before, next), s, spans, spoken)
		before = spans[len(spans)-1].End
		spoken = spoken || len(want) > 0
		require.Len(t, finals[i].Segments, len(want))
		for k, seg := range want {
			got := finals[i].Segments[k]
			assert.Equal(t, seg.Text, got.Text)
			// the times of CTC models also depend on half a minute of sound after
			assert.InDelta(t, seg.Start, got.Start, 0.05)
			assert.InDelta(t, seg.End, got.End, 0.05)
			words += len(strings.Fields(got.Text))
		}
	}
	return words
}

// checkGrowth checks that the text of each utterance only grows.
func checkGrowth(t testing.TB, partials, finals []Event) (kept int) {
	t.Helper()
	last := map[int]string{}
	for _, e := range append(append([]Event{}, partials...), finals...) {
		assert.True(t, strings.HasPrefix(e.Text, last[e.Utterance]), "utterance %d: %q after %q", e.Utterance, e.Text, last[e.Utterance])
		last[e.Utterance] = e.Text
		if e.Kept {
			kept++
		} else if e.Kind == spec.LiveFinal {
			var whole []asr.Segment
			for _, seg := range e.Segments {
				whole = append(whole, asr.Segment{Text: seg.Text})
			}
			assert.Equal(t, joined(whole), e.Text)
		}
	}
	return kept
}

// In pieces of 20 ms, of 250 ms and in one piece, the final texts equal the
// texts of the same speech in the recording, in both tiers, and the partial
// texts only grow. The short form has one of the sizes for each recording.
func TestFinalsAreTheTextOfTheRecording(t *testing.T) {
	p := demoPipeline(t)
	all, err := filepath.Glob("../testdata/demo/short/*")
	require.NoError(t, err)
	var some []string
	for i, path := range all {
		if i%10 == 4 {
			some = append(some, path)
		}
	}
	require.NotEmpty(t, some)
	least := 20
	if testing.Short() {
		least = 8
	}
	for tier, opt := range tiers() {
		words, kept, shown := 0, 0, 0
		for i, path := range some {
			pcm := decoded(t, path)
			for k, n := range []int{320, 4000, pcm.Len()} {
				if testing.Short() && k != (i+1)%3 {
					continue
				}
				s, err := Open(t.Context(), p, Options{Options: opt})
				require.NoError(t, err)
				events, res := play(t, s, pcm, pieces(n))
				words += checkFinals(t, p, s, opt, pcm, events[spec.LiveFinal])
				kept += checkGrowth(t, events[spec.LivePartial], events[spec.LiveFinal])
				shown += len(events[spec.LivePartial])
				total := 0
				for k, e := range events[spec.LiveFinal] {
					for _, seg := range e.Segments {
						assert.Equal(t, total, seg.ID)
						assert.Equal(t, seg.Text, res.Segments[total].Text)
						total++
					}
					assert.Equal(t, k, e.Utterance)
				}
				assert.Len(t, res.Segments, total)
				assert.InDelta(t, pcm.Duration(), res.AudioDuration, 0.001)
				assert.Len(t, events[spec.LiveSpeechStarted], len(events[spec.LiveFinal]))
				assert.Len(t, events[spec.LiveSpeechStopped], len(events[spec.LiveFinal]))
			}
		}
		t.Logf("%s: %d words, %d partials, %d finals kept words", tier, words, shown, kept)
		assert.Greater(t, words, least)
	}
}

// Random pieces and random pauses of the machine do not change the final texts,
// and text only grows.
func TestRandomPiecesOnlyGrow(t *testing.T) {
	p := demoPipeline(t)
	pcm := decoded(t, "../testdata/demo/long/en_2.opus")
	seconds := 20
	if testing.Short() {
		seconds = 10
	}
	pcm = audio.FromSamples(pcm.Samples(0, seconds*audio.SampleRate))
	for tier, opt := range tiers() {
		r := rand.New(rand.NewPCG(5, 6)) // not shared: the order of the tiers is random
		s, err := Open(t.Context(), p, Options{Options: opt})
		require.NoError(t, err)
		events, _ := play(t, s, pcm, func() (int, bool) { return 1 + r.IntN(audio.SampleRate/2), r.IntN(16) > 0 })
		checkFinals(t, p, s, opt, pcm, events[spec.LiveFinal])
		kept := checkGrowth(t, events[spec.LivePartial], events[spec.LiveFinal])
		t.Logf("%s: %d partials, %d utterances, %d kept words", tier, len(events[spec.LivePartial]), len(events[spec.LiveFinal]), kept)
		assert.NotEmpty(t, events[spec.LivePartial])
	}
}

// An utterance that is too long is divided, also where speech soon continues;
// the first part's text has no words of the second.
func TestDividedInAShortPause(t *testing.T) {
	p := demoPipeline(t)
	pcm := decoded(t, "../testdata/demo/long/en_2.opus")
	run, _, err := stages.OpenSession(t.Context(), p, tiers()["standard"], otograph.RunOptions{})
	require.NoError(t, err)
	defer run.End()
	speech, err := run.DetectSpeech(t.Context(), audio.FromSamples(pcm.Samples(0, 60*audio.SampleRate)))
	require.NoError(t, err)
	var joined []float32
	for _, span := range speech.Spans {
		joined = append(append(joined, pcm.Samples(span.Start, span.End)...), make([]float32, audio.SampleRate/10)...)
	}
	pcm = audio.FromSamples(joined[:34*audio.SampleRate])
	opt := tiers()["standard"]
	opt.ASRLanguage, opt.ASRBeamSize = new("en"), new(1)
	s, err := Open(t.Context(), p, Options{Options: opt, Manual: true})
	require.NoError(t, err)
	events, _ := play(t, s, pcm, pieces(pcm.Len()))
	require.Greater(t, len(s.speech), 1)
	for i, next := range s.speech[1:] {
		assert.Less(t, next[0].Start-s.speech[i][len(s.speech[i])-1].End, audio.SampleRate/4)
	}
	checkFinals(t, p, s, opt, pcm, events[spec.LiveFinal])
}

// A recording without speech has no text.
func TestNoTextWithoutSpeech(t *testing.T) {
	p := demoPipeline(t)
	list, err := filepath.Glob("../testdata/demo/nonspeech/*")
	require.NoError(t, err)
	for tier, opt := range tiers() {
		for i, path := range list {
			if testing.Short() && i%2 == 0 == *opt.Optimize {
				continue // in the short form, each recording in one tier
			}
			s, err := Open(t.Context(), p, Options{Options: opt})
			require.NoError(t, err)
			events, res := play(t, s, decoded(t, path), pieces(8000))
			assert.Empty(t, events[spec.LivePartial], "%s: %s", tier, path)
			for _, e := range events[spec.LiveFinal] {
				assert.Empty(t, e.Text, "%s: %s", tier, path)
			}
			assert.Empty(t, res.Segments)
		}
	}
}

// A session in which nobody speaks has the language and the tier of a recording,
// which decide its price.
func TestSilenceHasTheTierOfARecording(t *testing.T) {
	p := demoPipeline(t)
	silence := audio.Raw(make([]float32, 2*audio.SampleRate), audio.SampleRate, 1)
	pcm, err := audio.Open(t.Context(), silence, audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	for _, language := range []*string{nil, new("en"), new("ja")} {
		opt := otograph.Options{ASRLanguage: language, EnableDiarize: new(false), EnableAudioEvents: new(false)}
		want, err := p.Run(t.Context(), silence, opt)
		require.NoError(t, err)
		s, err := Open(t.Context(), p, Options{Options: opt})
		require.NoError(t, err)
		_, res := play(t, s, pcm, pieces(8000))
		assert.Equal(t, []any{want.Tier, want.Language, want.LanguageProbability}, []any{res.Tier, res.Language, res.LanguageProbability})
	}
}

// Sessions leave no goroutine and no descriptor, whether or not anything was
// written, and whether they are closed or canceled. The test opens 1,000, and
// 150 in the short form.
func TestManySessionsLeaveNothing(t *testing.T) {
	p := demoPipeline(t)
	opt := Options{Options: otograph.Options{ASRLanguage: new("en")}, TempDir: t.TempDir()}
	pcm := decoded(t, "../testdata/demo/short/en_00.flac")
	one := func(i int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := Open(ctx, p, opt)
		require.NoError(t, err)
		if i%100 == 0 {
			require.NoError(t, s.Write(pcm.Samples(0, pcm.Len())))
		}
		if i%3 == 0 {
			cancel()
		}
		_, err = s.Close()
		if i%3 == 0 && err != nil {
			assert.ErrorIs(t, err, context.Canceled)
		} else {
			assert.NoError(t, err)
		}
		assert.ErrorIs(t, s.Write(nil), errOf(s))
	}
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	one(1)
	one(100)
	goroutines, files := runtime.NumGoroutine(), descriptors()
	sessions := 1000
	if testing.Short() {
		sessions = 150
	}
	for i := range sessions {
		one(i)
	}
	left := func() error {
		if n, f := runtime.NumGoroutine(), descriptors(); n > goroutines || f > files {
			return fmt.Errorf("%d goroutines of %d, %d descriptors of %d", n, goroutines, f, files)
		}
		return nil
	}
	for range 1000 {
		if left() == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !assert.NoError(t, left()) {
		buf := make([]byte, 1<<20)
		t.Logf("%s", buf[:runtime.Stack(buf, true)])
	}
	list, err := os.ReadDir(opt.TempDir)
	require.NoError(t, err)
	assert.Empty(t, list)
	assert.Empty(t, schedulers)
}

func errOf(s *Session) error {
	if s.err != nil {
		return s.err
	}
	return ErrClosed
}
