package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

// spoken returns a result with words of half a second each.
func spoken(words ...string) *otograph.Result {
	g := spec.Segment{}
	for i, w := range words {
		g.Text += " " + w
		g.Words = append(g.Words, spec.Word{Start: float64(i) / 2, End: float64(i+1) / 2, Word: w})
	}
	g.End = float64(len(words)) / 2
	return &otograph.Result{Language: "en", Ran: spec.Capabilities{ASR: true}, Segments: []spec.Segment{g}}
}

func TestScoreLive(t *testing.T) {
	event := func(at float64, kind spec.LiveKind, text string) arrival {
		return arrival{at, live.Event{Kind: kind, End: 2, Text: text}}
	}
	final := event(3.25, spec.LiveFinal, "I can not see")
	final.Segments = []spec.Segment{{Text: "I cannot see"}}
	it := Item{Language: "en", Text: new("I cannot see it")}
	var l liveLevel
	l.score(it, spoken("I", "cannot", "see", "it"), spoken("I", "cannot", "see"), []arrival{
		event(1, spec.LivePartial, "I can"), event(1.5, spec.LivePartial, "I can not"), event(2.5, spec.LiveSpeechStopped, ""), final,
	})
	assert.Equal(t, latencies{0.75}, l.AfterStop)
	assert.Equal(t, latencies{1.25}, l.AfterWord, "the last word, it, ends at 2 s")
	assert.Equal(t, latencies{0.5, 1.75}, l.Interim, "I in the first partial, see in the final; cannot never appears")
	assert.Equal(t, 3, l.Words)
	assert.Equal(t, 2, l.Changed, "can not became cannot")
	assert.Equal(t, WordErrors{Reference: 4, Deletions: 1}, l.Errors)
	assert.Equal(t, WordErrors{Reference: 4}, l.Offline)

	it.Words, l = []TimedText{{Start: 0, End: 0.25, Text: "I"}}, liveLevel{}
	l.score(it, spoken("I"), spoken("I"), []arrival{event(1, spec.LivePartial, "I"), event(2.5, spec.LiveSpeechStopped, ""), final})
	assert.Equal(t, latencies{0.75}, l.Interim, "the manifest's times come before the offline ones")
	assert.Equal(t, latencies{3}, l.AfterWord)
	assert.Equal(t, [3]float64{2, 2.9, 2.98}, latencies{3, 1, 2}.percentiles())
}

// TestLargestNumberOfSessions: the search tries few numbers of sessions, each
// once.
func TestLargestNumberOfSessions(t *testing.T) {
	for _, want := range []int{0, 1, 2, 3, 5, 8, 11, 63, 64} {
		asked := map[int]int{}
		got, err := largest(64, func(n int) (bool, error) {
			asked[n]++
			return n <= want, nil
		})
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.LessOrEqual(t, len(asked), 13)
		for n, times := range asked {
			assert.Equal(t, 1, times, "%d of %d", n, want)
		}
	}
	_, err := largest(64, func(int) (bool, error) { return false, errors.New("failed") })
	assert.Error(t, err)
}

// echo is a stream that answers each packet immediately.
type echo struct {
	events chan live.Event
	got    []float32
	after  []live.Event // at its end
}

func (s *echo) Write(samples []float32) error {
	s.got = append(s.got, samples...)
	s.events <- live.Event{Kind: spec.LivePartial, End: float64(len(s.got)) / audio.SampleRate}
	return nil
}

func (s *echo) Events() iter.Seq2[live.Event, error] {
	return func(yield func(live.Event, error) bool) {
		for e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *echo) Close() (*otograph.Result, error) {
	for _, e := range s.after {
		s.events <- e
	}
	close(s.events)
	return spoken("yes"), nil
}

// A packet is written when its last sample has been spoken; the clock is the
// test's own.
func TestPlayAtItsOwnSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &echo{events: make(chan live.Event)}
		start := time.Now()
		_, list, err := play(s, audio.FromSamples(make([]float32, audio.SampleRate+7)))
		require.NoError(t, err)
		assert.Len(t, s.got, (audio.SampleRate+silenceAfter)/packet*packet+packet)
		assert.Len(t, list, len(s.got)/packet)
		for _, a := range list {
			assert.InDelta(t, a.End, a.at, 1e-6)
		}
		assert.Equal(t, time.Duration(len(s.got))*time.Second/audio.SampleRate, time.Since(start))
	})
}

// oneSecond measures another recognizer by a recording of a second.
func oneSecond(stream func(context.Context, *string) (LiveStream, error)) *liveBench {
	return &liveBench{
		Config:  Config{Items: []Item{{Name: "a", Text: new("yes")}}},
		system:  System{Stream: stream},
		sounds:  []*audio.PCM{audio.FromSamples(make([]float32, audio.SampleRate))},
		offline: []*otograph.Result{spoken("yes")},
		report:  LiveReport{System: "other", Recordings: 1},
	}
}

// busy is another recognizer: it serves one session at a time.
type busy struct {
	echo
	open *atomic.Int32
}

func (s *busy) Close() (*otograph.Result, error) {
	s.open.Add(-1)
	return s.echo.Close()
}

// Live measures another recognizer's sessions; if it refuses the sessions of a
// load, the report has a failure.
func TestLiveOfAnotherRecognizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		stream := func(_ context.Context, language *string) (LiveStream, error) {
			assert.Nil(t, language)
			if open.Add(1) > 1 {
				return nil, errors.New("full")
			}
			s := &busy{echo{events: make(chan live.Event)}, &open}
			s.after = []live.Event{{Kind: spec.LiveSpeechStopped, End: 0.5}, {Kind: spec.LiveFinal, End: 0.5, Text: "yes", Segments: []spec.Segment{{Text: "yes"}}}}
			return s, nil
		}
		b := oneSecond(stream)
		l, err := b.level(t.Context(), 1)
		require.NoError(t, err)
		assert.Len(t, l.AfterStop, 1)
		assert.Equal(t, WordErrors{Reference: 1}, l.Errors)
		_, err = b.level(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, []string{"2 sessions: full"}, b.report.Failures)
		open.Store(1)
		b.report.Levels = nil
		_, err = b.level(t.Context(), 1)
		assert.ErrorContains(t, err, "full")
	})
}

// slow is a recognizer that gives its text half a second after the end.
type slow struct{ busy }

func (s *slow) Close() (*otograph.Result, error) {
	defer s.open.Add(-1)
	s.events <- s.after[0]
	time.Sleep(time.Second / 2)
	s.events <- s.after[1]
	close(s.events)
	res := spoken("yes")
	res.AudioDuration = 1
	return res, nil
}

// Without numbers of sessions, the report and its table have the largest ones
// that keep up. A load that the system refuses is tried once.
func TestLiveSearchesForTheMostSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		stream := func(context.Context, *string) (LiveStream, error) {
			if open.Add(1) > 5 {
				open.Add(-1)
				return nil, errors.New("full")
			}
			s := &slow{busy{echo{events: make(chan live.Event)}, &open}}
			s.after = []live.Event{{Kind: spec.LiveSpeechStopped, End: 1}, {Kind: spec.LiveFinal, End: 1, Text: "yes", Segments: []spec.Segment{{Text: "yes"}}}}
			return s, nil
		}
		b := oneSecond(stream)
		require.NoError(t, b.measure(t.Context(), nil))
		assert.Equal(t, []int{0, 5}, b.report.Most, "the text comes after 0.5 s")
		assert.Equal(t, []string{"8 sessions: full", "6 sessions: full"}, b.report.Failures)
		var table, object strings.Builder
		require.NoError(t, b.report.WriteTable(&table))
		for _, line := range []string{
			"other: 1 recording, played at their own speed; ",
			"\nmedian, P95, P99; sessions                                  1                   2                   4                   5\n",
			"\nfinal text after the end of its utterance  0.50, 0.50, 0.50 s  0.50, 0.50, 0.50 s",
			"\n8 sessions: full\n6 sessions: full\nSessions with 95 % of the final texts within 0.3 s of the end of their utterances: 0\n",
			"within 1 s of the end of their utterances: 5\n",
		} {
			assert.Contains(t, table.String(), line)
		}
		require.NoError(t, json.NewEncoder(&object).Encode(b.report))
		assert.Contains(t, object.String(), `"final_after_stop":{"count":5,"p50":0.5,"p95":0.5,"p99":0.5}`)
	})
}

// Live transcribes the whole recordings once, however many systems it measures,
// and measures the next system after one that fails.
func TestLivePreparesOnce(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	const size = audio.SampleRate / 5 // bytes of 100 ms
	file := filepath.Join(t.TempDir(), "a.wav")
	require.NoError(t, os.WriteFile(file, append(mediafiles.WAVHeader(audio.SampleRate, size), make([]byte, size)...), 0o600))
	says := func(context.Context, *string) (LiveStream, error) {
		s := &echo{events: make(chan live.Event)}
		s.after = []live.Event{{Kind: spec.LiveSpeechStopped, End: 0.1}, {Kind: spec.LiveFinal, End: 0.1, Text: "yes", Segments: []spec.Segment{{Text: "yes"}}}}
		return s, nil
	}
	refuses := func(context.Context, *string) (LiveStream, error) { return nil, errors.New("no") }
	whole := 0
	var measured []string
	err := Live(t.Context(), Config{
		Items: []Item{{Name: "a", Path: file, Text: new("yes")}},
		Systems: []System{
			{Name: "first", Set: demo.Models(), Stream: says, Options: otograph.Options{EnableDiarize: new(false), EnableAudioEvents: new(false)}},
			{Name: "second", Stream: refuses},
			{Name: "third", Stream: says},
		},
		Progress: func(s Step) {
			if s.What == "transcribe as a whole" {
				whole++
			}
		},
	}, []int{1}, 0, func(r *LiveReport) error {
		measured = append(measured, fmt.Sprint(r.System, len(r.Levels)))
		return nil
	})
	assert.EqualError(t, err, "second: no")
	assert.Equal(t, []string{"first1", "third1"}, measured)
	assert.Equal(t, 1, whole)
}
