package diarize

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/voices"
)

func TestMain(m *testing.M) { outside.Main(m) }

// utterance is a stretch of samples and its speaker.
type utterance struct {
	audio.Span
	who int
}

// madeUp embeds a window as the mean of its voices, weighted by their share,
// plus noise that depends only on the window.
type madeUp struct {
	truth  []utterance
	voice  [][]float64
	noise  float64
	broken error
	dim    int // of the returned vectors, 0: 64
	plda   *PLDA
}

const madeUpDim = 64

func newMadeUp(speakers int, truth []utterance, noise float64) *madeUp {
	r := rand.New(rand.NewPCG(uint64(speakers), 99))
	m := &madeUp{truth: truth, noise: noise, dim: madeUpDim}
	for range speakers {
		m.voice = append(m.voice, gauss(r, make([]float64, madeUpDim)))
	}
	return m
}

func (m *madeUp) Dim() int             { return madeUpDim }
func (m *madeUp) SameSpeaker() float64 { return 0.6 }

func (m *madeUp) Cosines() (one, two float64) { return 0, 0 }
func (m *madeUp) PLDA() *PLDA                 { return m.plda }
func (m *madeUp) Close() error                { return nil }

func (m *madeUp) Embed(ctx context.Context, _ *audio.PCM, windows []audio.Span) ([][]float32, error) {
	if m.broken != nil {
		return nil, m.broken
	}
	var out [][]float32
	for _, w := range windows {
		v := make([]float64, m.dim)
		heard := false
		for _, s := range m.truth {
			share := float64(min(s.End, w.End)-max(s.Start, w.Start)) / float64(w.Len())
			if share <= 0 {
				continue
			}
			heard = true
			for d := range min(m.dim, madeUpDim) {
				v[d] += share * m.voice[s.who][d]
			}
		}
		if heard {
			for d, x := range gauss(rand.New(rand.NewPCG(uint64(w.Start), uint64(w.End))), make([]float64, m.dim)) {
				v[d] += m.noise * x
			}
		}
		row := make([]float32, m.dim)
		for d := range v {
			row[d] = float32(v[d])
		}
		voices.Normalize(row)
		out = append(out, row)
	}
	return out, ctx.Err()
}

func span(from, to float64) audio.Span {
	return audio.Span{Start: int(math.Round(from * audio.SampleRate)), End: int(math.Round(to * audio.SampleRate))}
}

func silence(seconds float64) *audio.PCM {
	return audio.FromSamples(make([]float32, int(seconds*audio.SampleRate)))
}

func TestWindows(t *testing.T) {
	for _, c := range []struct {
		name    string
		speech  []audio.Span
		least   float64
		windows []audio.Span
		segment []int
	}{
		{"none", nil, 0.5, nil, nil},
		{"too short", []audio.Span{span(1, 1.49)}, 0.5, nil, nil},
		{"just long enough", []audio.Span{span(1, 1.5)}, 0.5, []audio.Span{span(1, 1.5)}, []int{0}},
		{"one window", []audio.Span{span(1, 2.5)}, 0.5, []audio.Span{span(1, 2.5)}, []int{0}},
		{"a little more: the second ends with the segment", []audio.Span{span(1, 2.6)}, 0.5, []audio.Span{span(1, 2.5), span(1.1, 2.6)}, []int{0, 0}},
		{"two hops", []audio.Span{span(0, 3)}, 0.5, []audio.Span{span(0, 1.5), span(0.75, 2.25), span(1.5, 3)}, []int{0, 0, 0}},
		{"short ones left out", []audio.Span{span(0, 0.3), span(1, 2), span(3, 3.4), span(4, 5)}, 0.5, []audio.Span{span(1, 2), span(4, 5)}, []int{1, 3}},
		{"none left out", []audio.Span{span(0, 0.3), {Start: 8000, End: 8000}}, 0, []audio.Span{span(0, 0.3)}, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := windows(c.speech, c.least, false)
			assert.Equal(t, c.windows, w)
			assert.Equal(t, c.segment, s)
		})
	}
}

func TestWideWindows(t *testing.T) {
	w, s := windows([]audio.Span{span(0, 0.4), span(1, 2), span(3, 6), span(9, 11), span(12, 14.2)}, 0.5, true)
	assert.Equal(t, []audio.Span{span(1, 2), span(3, 4.5), span(4.5, 6), span(9, 11), span(12, 13.1), span(13.1, 14.2)}, w)
	assert.Equal(t, []int{1, 2, 2, 3, 4, 4}, s)
	assert.Equal(t, span(1, 2), middle(w[0], middleSamples), "a short window is embedded whole")
	assert.Equal(t, span(3.25, 4.25), middle(w[1], middleSamples))
}

func TestChangesInsideSegmentsAreDetected(t *testing.T) {
	truth := []utterance{{span(0.5, 6.3), 1}, {span(6.3, 12), 0}, {span(12, 18.4), 1}, {span(20, 26), 0}, {span(26, 33), 2}}
	speech := []audio.Span{span(0.5, 18.4), span(20, 33)}
	r, err := Diarize(t.Context(), newMadeUp(3, truth, 0.5), silence(34), speech, DefaultOptions())
	require.NoError(t, err)
	require.Len(t, r.Turns, 5)
	for i, want := range []struct {
		start, end float64
		speaker    int
	}{{0.5, 6.3, 0}, {6.3, 12, 1}, {12, 18.4, 0}, {20, 26, 1}, {26, 33, 2}} {
		assert.InDelta(t, want.start, r.Turns[i].Start, 0.15, "turn %d", i)
		assert.InDelta(t, want.end, r.Turns[i].End, 0.15, "turn %d", i)
		assert.Equal(t, want.speaker, r.Turns[i].Speaker, "turn %d", i)
	}
	assert.Equal(t, 0.5, r.Turns[0].Start, "segment borders are exact")
	assert.Equal(t, 18.4, r.Turns[2].End)
	require.Len(t, r.Speakers, 3)
	assert.Equal(t, []int{1, 2, 1}, []int{r.Speakers[0].Segments, r.Speakers[1].Segments, r.Speakers[2].Segments})
}

func TestShortSegmentsTakeTheNearestTurn(t *testing.T) {
	truth := []utterance{{span(1, 6), 0}, {span(6.5, 6.8), 1}, {span(10, 15), 1}, {span(9.4, 9.7), 0}, {span(15.2, 15.5), 0}}
	speech := []audio.Span{span(0.2, 0.5), span(1, 6), span(6.5, 6.8), span(9.4, 9.7), span(10, 15), span(15.2, 15.5)}
	r, err := Diarize(t.Context(), newMadeUp(2, truth, 0.3), silence(16), speech, DefaultOptions())
	require.NoError(t, err)
	assert.Equal(t, []Turn{{0.2, 0.5, 0}, {1, 6, 0}, {6.5, 6.8, 0}, {9.4, 9.7, 1}, {10, 15, 1}, {15.2, 15.5, 1}}, r.Turns)
	assert.Equal(t, 1, r.Speakers[0].Segments, "segments that were not embedded do not count")
}

func TestOnlyShortSegments(t *testing.T) {
	truth := []utterance{{span(0, 0.2), 0}, {span(1, 1.4), 1}}
	r, err := Diarize(t.Context(), newMadeUp(2, truth, 0), silence(2), []audio.Span{span(0, 0.2), span(1, 1.4)}, DefaultOptions())
	require.NoError(t, err)
	assert.Equal(t, []Turn{{0, 0.2, 0}, {1, 1.4, 0}}, r.Turns)
	require.Len(t, r.Speakers, 1)
	assert.Equal(t, 1, r.Speakers[0].Segments)
}

func TestNoSpeechAndSilence(t *testing.T) {
	m := newMadeUp(1, nil, 0)
	r, err := Diarize(t.Context(), m, silence(5), nil, DefaultOptions())
	require.NoError(t, err)
	assert.Empty(t, r.Turns)
	assert.Empty(t, r.Speakers)
	// Speech that is silence to the embedder: zero vectors.
	r, err = Diarize(t.Context(), m, silence(5), []audio.Span{span(1, 4)}, DefaultOptions())
	require.NoError(t, err)
	assert.Equal(t, []Turn{{1, 4, 0}}, r.Turns)
	require.Len(t, r.Speakers, 1)
	assert.Equal(t, make([]float32, madeUpDim), r.Speakers[0].Embedding)
}

func TestInvalidInputIsAnError(t *testing.T) {
	truth := []utterance{{span(0, 5), 0}}
	pcm := silence(5)
	for _, speech := range [][]audio.Span{{span(2, 3), span(1, 2)}, {span(0, 3), span(2, 4)}, {span(4, 6)}, {{Start: 5, End: 4}}} {
		_, err := Embed(t.Context(), newMadeUp(1, truth, 0), pcm, speech, EmbedOptions{})
		assert.ErrorContains(t, err, "speech segment", "%v", speech)
	}
	m := newMadeUp(1, truth, 0)
	m.broken = errors.New("no power")
	_, err := Diarize(t.Context(), m, pcm, []audio.Span{span(0, 5)}, DefaultOptions())
	assert.ErrorIs(t, err, m.broken)
	m = newMadeUp(1, truth, 0)
	m.dim = 60
	_, err = Diarize(t.Context(), m, pcm, []audio.Span{span(0, 5)}, DefaultOptions())
	assert.ErrorContains(t, err, "60 numbers for window 0, expected 64")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Diarize(ctx, newMadeUp(1, truth, 0), pcm, []audio.Span{span(0, 5)}, DefaultOptions())
	assert.ErrorIs(t, err, context.Canceled)

	for name, opt := range map[string]Options{
		"num_speakers":                     {ClusterOptions: ClusterOptions{NumSpeakers: -1}},
		"min_speakers":                     {ClusterOptions: ClusterOptions{MinSpeakers: 5, MaxSpeakers: 2}},
		"max_speakers":                     {ClusterOptions: ClusterOptions{MaxSpeakers: -1}},
		"diarize_min_segment_sec":          {EmbedOptions: EmbedOptions{MinSegment: math.NaN()}},
		"diarize_single_speaker_threshold": {ClusterOptions: ClusterOptions{SingleSpeakerThreshold: 1.5}},
		"same_speaker_cosine":              {ClusterOptions: ClusterOptions{SameSpeakerCosine: -0.1}},
	} {
		_, err := Diarize(t.Context(), newMadeUp(1, truth, 0), pcm, nil, opt)
		require.ErrorIs(t, err, ErrOptions, name)
		assert.ErrorContains(t, err, name)
	}
	assert.NoError(t, DefaultOptions().ClusterOptions.validate(true))
	assert.NoError(t, ClusterOptions{MinSpeakers: 12}.validate(false), "the default maximum makes room")
}

// TestTurnsCoverTheSpeech: for any speech, turns are in order, do not overlap,
// cover the speech exactly, and every speaker has one.
func TestTurnsCoverTheSpeech(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		speakers := rapid.IntRange(1, 4).Draw(t, "speakers")
		opt := DefaultOptions()
		opt.NumSpeakers = rapid.IntRange(0, 4).Draw(t, "num")
		opt.MinSpeakers = rapid.IntRange(1, 3).Draw(t, "min")
		opt.MaxSpeakers = rapid.IntRange(3, 6).Draw(t, "max")
		opt.ExactWindows = rapid.SampledFrom([]int{0, 5}).Draw(t, "exact")
		var speech []audio.Span
		var truth []utterance
		at := 0
		for range rapid.IntRange(0, 12).Draw(t, "segments") {
			if r.IntN(4) > 0 { // else the segments touch
				at += r.IntN(30000)
			}
			s := audio.Span{Start: at, End: at + 100 + r.IntN(200000)}
			speech = append(speech, s)
			for from := s.Start; from < s.End; {
				to := min(from+8000+r.IntN(80000), s.End)
				truth = append(truth, utterance{audio.Span{Start: from, End: to}, r.IntN(speakers)})
				from = to
			}
			at = s.End
		}
		pcm := audio.FromSamples(make([]float32, at+1))
		res, err := Diarize(context.Background(), newMadeUp(speakers, truth, 0.8), pcm, speech, opt)
		if err != nil {
			t.Fatal(err)
		}
		samples := func(seconds float64) int { return int(math.Round(seconds * audio.SampleRate)) }
		k := 0
		next := 0
		at = 0 // the end of the last turn, which may join segments that touch
		for _, s := range speech {
			at = max(at, s.Start)
			for at < s.End {
				if k == len(res.Turns) || samples(res.Turns[k].Start) != at || samples(res.Turns[k].End) > s.End && !slices.ContainsFunc(speech, func(o audio.Span) bool { return o.Start == s.End }) {
					t.Fatalf("turn %d of %v does not go on at sample %d of segment %v", k, res.Turns, at, s)
				}
				turn := res.Turns[k]
				if turn.Speaker > next {
					t.Fatalf("speaker %d before speaker %d: %v", turn.Speaker, next, res.Turns)
				}
				next = max(next, turn.Speaker+1)
				at = samples(turn.End)
				k++
			}
		}
		if k != len(res.Turns) || next != len(res.Speakers) {
			t.Fatalf("%d of %d turns and %d of %d speakers seen", k, len(res.Turns), next, len(res.Speakers))
		}
		if n := len(res.Speakers); opt.NumSpeakers == 0 && n > opt.MaxSpeakers || opt.NumSpeakers > 0 && n > opt.NumSpeakers {
			t.Fatalf("%d speakers", n)
		}
		again, err := Diarize(context.Background(), newMadeUp(speakers, truth, 0.8), pcm, speech, Options{opt.EmbedOptions, ClusterOptions{
			NumSpeakers: opt.NumSpeakers, MinSpeakers: opt.MinSpeakers, MaxSpeakers: opt.MaxSpeakers,
			SingleSpeakerThreshold: opt.SingleSpeakerThreshold, ExactWindows: opt.ExactWindows, Threads: 3,
		}})
		if err != nil || !slices.Equal(res.Turns, again.Turns) {
			t.Fatalf("three threads: %v, %v", again, err)
		}
	})
}

func TestViterbiIgnoresOneWindow(t *testing.T) {
	truth := []utterance{{span(0, 10), 0}, {span(11, 21), 1}}
	m := newMadeUp(2, truth, 0)
	e, err := Embed(t.Context(), m, silence(22), []audio.Span{span(0, 10), span(11, 21)}, EmbedOptions{})
	require.NoError(t, err)
	labels := make([]int, len(e.Windows))
	for i, w := range e.Windows {
		if w.Start > 10*audio.SampleRate {
			labels[i] = 1
		}
	}
	// One window in the middle of the first voice is slightly closer to the
	// second.
	v := e.vectors.row(5)
	for d := range v {
		v[d] = float32(0.47*m.voice[0][d] + 0.53*m.voice[1][d])
	}
	voices.Normalize(v)
	x, centre := e.vectors, centroids(e.vectors, labels, 2)
	assert.Equal(t, 1, nearestCentroids(x, centre)[5])
	assert.Equal(t, labels, settle(x, labels, 2, changeCosts(e)))
}
