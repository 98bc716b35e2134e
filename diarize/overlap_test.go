package diarize

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

// truthSegmenter is a segmenter that knows the truth, and numbers the speakers
// of every window anew.
type truthSegmenter struct {
	truth  []utterance
	broken error
}

func (*truthSegmenter) Window() int  { return 10 * audio.SampleRate }
func (*truthSegmenter) Close() error { return nil }

func (w *truthSegmenter) Segment(ctx context.Context, _ *audio.PCM, windows []audio.Span) ([]Activity, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	const shift, field = 320, 960
	out := make([]Activity, len(windows))
	for i, span := range windows {
		order := rand.New(rand.NewPCG(uint64(span.Start), 5)).Perm(3)
		local := map[int]int{}
		a := Activity{Shift: shift, Field: field}
		for at := span.Start + field/2; at < span.End || len(a.Active) == 0; at += shift {
			var who uint8
			for _, s := range w.truth {
				if s.Start <= at && at < s.End {
					if _, ok := local[s.who]; !ok && len(local) < len(order) {
						local[s.who] = order[len(local)]
					}
					if l, ok := local[s.who]; ok {
						who |= 1 << l
					}
				}
			}
			a.Active = append(a.Active, who)
		}
		out[i] = a
	}
	return out, ctx.Err()
}

// sameSpeakers returns the seconds in which hypothesis and truth have the same set of
// speakers, and the total seconds of speech in the truth.
func sameSpeakers(truth []utterance, turns []Turn, seconds float64) (same, all float64) {
	for at := 0.005; at < seconds; at += 0.01 {
		var ref, hyp uint64
		for _, s := range truth {
			if from, to := s.Seconds(); from <= at && at < to {
				ref |= 1 << s.who
			}
		}
		for _, turn := range turns {
			if turn.Start <= at && at < turn.End {
				hyp |= 1 << turn.Speaker
			}
		}
		if ref != 0 {
			all += 0.01
			if ref == hyp {
				same += 0.01
			}
		}
	}
	return same, all
}

func TestOverlapsAreTurnsOfBothVoices(t *testing.T) {
	truth := []utterance{
		{span(0.5, 6.3), 0}, {span(5.5, 12), 1}, {span(8, 8.9), 0}, {span(13, 21.2), 2}, {span(19.8, 26), 0}, {span(26, 33), 1}, {span(28.1, 29.3), 2},
	}
	speech := []audio.Span{span(0.5, 12), span(13, 33)}
	opt := DefaultOptions()
	without, err := Diarize(t.Context(), newMadeUp(3, truth, 0.4), silence(34), speech, opt)
	require.NoError(t, err)
	opt.Segmenter = &truthSegmenter{truth: truth}
	r, err := Diarize(t.Context(), newMadeUp(3, truth, 0.4), silence(34), speech, opt)
	require.NoError(t, err)
	require.Len(t, r.Speakers, 3)
	same, all := sameSpeakers(truth, r.Turns, 34)
	before, _ := sameSpeakers(truth, without.Turns, 34)
	assert.Greater(t, same/all, 0.97)
	assert.Less(t, before/all, 0.9, "without a segmenter the overlaps are missed")

	end := 0.0
	var covered float64
	for _, turn := range r.Exclusive {
		assert.GreaterOrEqual(t, turn.Start, end)
		end, covered = turn.End, covered+turn.End-turn.Start
	}
	assert.InDelta(t, 31.5, covered, 1e-6, "the exclusive turns are exactly the speech")
	for _, turn := range r.Exclusive {
		if turn.Start < 8.5 && 8.5 < turn.End {
			assert.Equal(t, 1, turn.Speaker, "a short word does not interrupt the turn")
		}
	}
}

func TestSpeechIsCutAtTheSegmentersChangeOfVoice(t *testing.T) {
	truth := []utterance{{span(0, 12), 0}, {span(12, 14), 1}, {span(14, 26), 0}, {span(25, 30), 1}}
	s, err := listen(t.Context(), &truthSegmenter{truth: truth}, silence(30), false)
	require.NoError(t, err)
	spans, within := s.solo([]audio.Span{span(0, 30)})
	require.Len(t, spans, 4)
	assert.Equal(t, []int{0, 0, 0, 0}, within)
	for i, want := range []audio.Span{span(0, 12), span(12, 14), span(14, 25), span(26, 30)} {
		assert.InDelta(t, want.Start, spans[i].Start, 2*sceneStep, "stretch %d", i)
		assert.InDelta(t, want.End, spans[i].End, 2*sceneStep, "stretch %d", i)
	}
}

// counted counts the samples that an embedder is given.
type counted struct {
	Embedder
	samples int
}

func (c *counted) Embed(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([][]float32, error) {
	c.samples += samples(windows)
	return c.Embedder.Embed(ctx, pcm, windows)
}

func TestLongRecordingsAreEmbeddedInPart(t *testing.T) {
	const seconds = 720
	var truth []utterance
	for at := 0; at < seconds; at += 9 {
		truth = append(truth, utterance{span(float64(at), float64(at+6)), 0}, utterance{span(float64(at+6), float64(at+9)), 1})
	}
	opt := DefaultOptions()
	opt.Segmenter = &truthSegmenter{truth: truth}
	for _, p := range truth {
		opt.Passages = append(opt.Passages, p.Span)
	}
	e := &counted{Embedder: newMadeUp(2, truth, 0.3)}
	r, err := Diarize(t.Context(), e, silence(seconds), []audio.Span{span(0, seconds)}, opt)
	require.NoError(t, err)
	assert.Len(t, r.Speakers, 2)
	same, all := sameSpeakers(truth, r.Turns, seconds)
	assert.Greater(t, same/all, 0.98)
	assert.Less(t, e.samples, seconds*audio.SampleRate*7/10, "embedded samples: two thirds are the windows' middles")
}

// TestSpeechApartFromPieces counts the sound in the middle of a tile in which a
// local speaker is active outside all pieces.
func TestSpeechApartFromPieces(t *testing.T) {
	a := Activity{Active: make([]uint8, 100), Shift: sceneStep, Field: sceneStep}
	for i := 20; i < 80; i++ {
		a.Active[i] = 2
	}
	one := tile{window: span(3, 4), middle: span(3.1, 3.7), activity: a}
	assert.Equal(t, 50*sceneStep, one.apart(1, nil), "from 3.2 to 3.7 s")
	assert.Equal(t, 20*sceneStep, one.apart(1, []piece{{span(2, 3.3), 0}, {span(3.5, 9), 1}}), "from 3.3 to 3.5 s")
	assert.Zero(t, one.apart(0, nil))
}

func TestVoiceOnlyInOverlaps(t *testing.T) {
	// Within its windows, speaker 1 never speaks alone at 40 s; elsewhere it
	// does.
	truth := []utterance{{span(0, 8), 0}, {span(8, 16), 1}, {span(16, 60), 0}, {span(40, 41.5), 1}}
	opt := DefaultOptions()
	opt.Segmenter = &truthSegmenter{truth: truth}
	r, err := Diarize(t.Context(), newMadeUp(2, truth, 0.3), silence(60), []audio.Span{span(0, 60)}, opt)
	require.NoError(t, err)
	require.Len(t, r.Speakers, 2)
	same, all := sameSpeakers(truth, r.Turns, 60)
	assert.Greater(t, same/all, 0.98)
}

func TestVoiceMostlyInOverlaps(t *testing.T) {
	// Speaker 2 says 2.1 s alone, hardly more than a speaker needs, and 2 s over
	// others.
	truth := []utterance{{span(0, 12), 0}, {span(12, 24), 1}, {span(24, 36), 0}, {span(34, 38.1), 2}, {span(38.1, 48), 1}}
	speech := []audio.Span{span(0, 48)}
	opt := DefaultOptions()
	opt.Segmenter = &truthSegmenter{truth: truth}
	r, err := Diarize(t.Context(), newMadeUp(3, truth, 0.3), silence(48), speech, opt)
	require.NoError(t, err)
	assert.Len(t, r.Speakers, 3)

	truth[3].Span, truth[4].Span = span(34, 36.2), span(36.1, 48) // now hardly anything alone
	speech = []audio.Span{span(0, 48)}
	r, err = Diarize(t.Context(), newMadeUp(3, truth, 0.3), silence(48), speech, opt)
	require.NoError(t, err)
	assert.Len(t, r.Speakers, 2)
}

// pairOf returns the likeness of a group of 60 windows and one of n, from the
// mean cosines within both and between them.
func pairOf(n, within, between float64) likeness {
	return likeness{sizes: []float64{60, n}, usual: within, cosine: []float64{within, between, between, within}, pairs: []float64{3540, 60 * n, 60 * n, n * (n - 1)}}
}

func TestCannotLink(t *testing.T) {
	const same = 0.5
	for name, c := range map[string]struct {
		size, together, cosine float64
		join                   bool
	}{
		"never heard together":         {6, 0, 0.55, true},
		"heard together":               {6, 4, 0.55, false},
		"heard together for a moment":  {6, 2, 0.55, true},
		"one voice parted in two":      {6, 4, 0.75, true},
		"a little of a long recording": {40, 4, 0.55, true},
	} {
		_, _, cosine := pairOf(c.size, 0.6, 0.45).nearest([]float64{1, c.cosine, c.cosine, 1}, []float64{0, c.together, c.together, 0}, same, true)
		assert.Equal(t, c.join, cosine >= same, name)
	}
}

func TestTwoVoicesOrOne(t *testing.T) {
	const same = 0.5
	for name, c := range map[string]struct {
		size, within, between, cosine float64
		one, stated                   bool
	}{
		"as alike as a voice":                        {20, 0.75, 0.74, 0.9, true, true},
		"two real voices of one channel":             {20, 0.75, 0.67, 0.84, false, true},
		"the same of a noisier embedder":             {20, 0.45, 0.41, 0.7, true, true},
		"two voices of a noisier embedder":           {20, 0.45, 0.3, 0.6, false, true},
		"too little to tell":                         {3, 0.75, 0.69, 0.84, true, true},
		"one voice in two rooms":                     {20, 0.75, 0.67, 0.84, false, true},
		"parts of a voice that the model calls two":  {20, 0.45, 0.43, 0.4, true, true},
		"surely two, whatever the model's threshold": {20, 0.75, 0.5, 0.7, false, false},
		"one voice whose sounds repeat exactly":      {20, 0.85, 0.75, 0.84, false, true},
	} {
		cos := []float64{1, c.cosine, c.cosine, 1}
		_, _, cosine := pairOf(c.size, c.within, c.between).nearest(cos, nil, same, false)
		assert.Equal(t, c.one, cosine >= same, "%s: no threshold stated", name)
		_, _, cosine = pairOf(c.size, c.within, c.between).nearest(cos, nil, same, true)
		assert.Equal(t, c.one || c.stated, cosine >= same, "%s: stated", name)
	}
}

func TestSegmenterWithoutActivity(t *testing.T) {
	truth := []utterance{{span(1, 9), 0}, {span(9, 18), 1}}
	speech := []audio.Span{span(1, 18)}
	opt := DefaultOptions()
	without, err := Diarize(t.Context(), newMadeUp(2, truth, 0.3), silence(20), speech, opt)
	require.NoError(t, err)
	opt.Segmenter = &truthSegmenter{}
	r, err := Diarize(t.Context(), newMadeUp(2, truth, 0.3), silence(20), speech, opt)
	require.NoError(t, err)
	assert.Len(t, r.Speakers, len(without.Speakers))
	same, all := sameSpeakers(truth, r.Turns, 20)
	assert.Greater(t, same/all, 0.95, "as without a segmenter")
}

func TestSegmenterErrors(t *testing.T) {
	opt := DefaultOptions()
	broken := errors.New("broken")
	opt.Segmenter = &truthSegmenter{broken: broken}
	_, err := Diarize(t.Context(), newMadeUp(1, nil, 0), silence(3), []audio.Span{span(0, 2)}, opt)
	assert.ErrorIs(t, err, broken)
	opt.Segmenter = mute{}
	_, err = Diarize(t.Context(), newMadeUp(1, nil, 0), silence(3), []audio.Span{span(0, 2)}, opt)
	assert.ErrorContains(t, err, "0 frames every 0 samples")
}

// TestOverlapsHaveAtMost64Speakers: more speakers are refused with a segmenter,
// whose sets of speakers have 64 bits, and not without one.
func TestOverlapsHaveAtMost64Speakers(t *testing.T) {
	truth := []utterance{{span(0, 2), 0}}
	speech := []audio.Span{span(0, 2)}
	for field, opt := range map[string]ClusterOptions{"num_speakers": {NumSpeakers: 65}, "max_speakers": {MaxSpeakers: 65}} {
		for _, segmenter := range []Segmenter{nil, &truthSegmenter{truth: truth}} {
			e, err := Embed(t.Context(), newMadeUp(1, truth, 0), silence(3), speech, EmbedOptions{Segmenter: segmenter})
			require.NoError(t, err)
			_, err = Cluster(t.Context(), e, opt)
			_, whole := Diarize(t.Context(), newMadeUp(1, truth, 0), silence(3), speech, Options{EmbedOptions{Segmenter: segmenter}, opt})
			if segmenter == nil {
				require.NoError(t, errors.Join(err, whole))
				continue
			}
			require.ErrorIs(t, err, ErrOptions)
			require.ErrorContains(t, err, field+" must be at most 64 with a segmenter, got 65")
			require.ErrorIs(t, whole, ErrOptions)
		}
	}
}

// mute returns activities without frames.
type mute struct{}

func (mute) Window() int  { return audio.SampleRate }
func (mute) Close() error { return nil }
func (mute) Segment(_ context.Context, _ *audio.PCM, windows []audio.Span) ([]Activity, error) {
	return make([]Activity, len(windows)), nil
}

// TestVoices: the segmenter decides where someone speaks, but a speech segment
// in which it hears nobody is kept.
func TestVoices(t *testing.T) {
	truth := []utterance{{span(2, 4), 0}, {span(3, 5), 1}, {span(12, 14), 0}}
	s, err := listen(t.Context(), &truthSegmenter{truth: truth}, silence(20), false)
	require.NoError(t, err)
	got := s.voices([]audio.Span{span(1, 3), span(7, 9), span(13, 13.5), span(18, 19)})
	want := []audio.Span{span(2, 5), span(7, 9), span(12, 14), span(18, 19)}
	require.Len(t, got, len(want))
	for i := range want {
		assert.InDelta(t, want[i].Start, got[i].Start, audio.SampleRate/50)
		assert.InDelta(t, want[i].End, got[i].End, audio.SampleRate/50)
	}
	assert.Equal(t, []audio.Span{span(7, 9)}, (&scene{}).voices([]audio.Span{span(7, 9)}))
}

// TestFilterOfVoices: without text, only the stretches with voices remain that
// touch a kept speech segment or are kept themselves.
func TestFilterOfVoices(t *testing.T) {
	e := Embeddings{
		scene: &scene{}, Speech: []audio.Span{span(1, 3), span(7, 9)}, within: []int{0, 1},
		original: []audio.Span{span(1, 3), span(7, 9)},
		voices:   []audio.Span{span(0.5, 1.5), span(2.5, 5), span(7.5, 8), span(12, 13), span(14, 15)},
	}
	e.vectors.dim = 2
	kept := e.filter(func(s audio.Span) bool { return s.Start < 6*audio.SampleRate || s.Start >= 14*audio.SampleRate })
	assert.Equal(t, []audio.Span{span(0.5, 1.5), span(2.5, 5), span(14, 15)}, kept.voices)
	assert.Equal(t, []audio.Span{span(1, 3)}, kept.original)
}

// For any result of the segmenter, the turns together are exactly the stretches
// with voices, the exclusive ones as well, and speakers are numbered by their
// first turn. TestShortSecondVoice: a second voice that only speaks together
// with another is a turn from leastOverlap on.
func TestShortSecondVoice(t *testing.T) {
	const first, second = 1, 2
	for _, c := range []struct {
		name    string
		samples int // in which both speak
		turns   int
	}{
		{"blur", leastOverlap - 1, 1},
		{"short answer", leastOverlap, 2},
	} {
		b := board{count: 2}
		b.add(audio.Span{Start: 0, End: audio.SampleRate}, first)
		b.add(audio.Span{Start: audio.SampleRate, End: audio.SampleRate + c.samples}, first|second)
		b.add(audio.Span{Start: audio.SampleRate + c.samples, End: 3 * audio.SampleRate}, first)
		b.end()
		assert.Len(t, b.pieces(), c.turns, c.name)
	}
}

func TestOverlappingTurnsCoverTheVoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var speech []audio.Span
		at := 0
		for range rapid.IntRange(1, 5).Draw(t, "segments") {
			start := at + rapid.IntRange(1, 60000).Draw(t, "pause")
			at = start + rapid.IntRange(1, 250000).Draw(t, "length")
			speech = append(speech, audio.Span{Start: start, End: at})
		}
		total := at + rapid.IntRange(0, 20000).Draw(t, "rest")
		var truth []utterance
		for range rapid.IntRange(0, 12).Draw(t, "turns") {
			start := rapid.IntRange(0, total-1).Draw(t, "start")
			truth = append(truth, utterance{audio.Span{Start: start, End: start + rapid.IntRange(1, 100000).Draw(t, "turn")}, rapid.IntRange(0, 3).Draw(t, "who")})
		}
		opt := DefaultOptions()
		opt.Segmenter = &truthSegmenter{truth: truth}
		e, err := Embed(context.Background(), newMadeUp(4, truth, 0.5), audio.FromSamples(make([]float32, total)), speech, opt.EmbedOptions)
		require.NoError(t, err)
		r, err := Cluster(context.Background(), e, opt.ClusterOptions)
		require.NoError(t, err)
		if e.scene != nil {
			speech = e.voices
		}
		covered := func(turns []Turn) (seconds float64) {
			end := 0.0
			for i, turn := range turns {
				require.Less(t, turn.Start, turn.End)
				if i > 0 {
					require.GreaterOrEqual(t, turn.Start, turns[i-1].Start)
				}
				seconds += max(0, turn.End-max(turn.Start, end))
				end = max(end, turn.End)
			}
			return seconds
		}
		samples := 0
		for _, s := range speech {
			samples += s.Len()
		}
		require.InDelta(t, float64(samples)/audio.SampleRate, covered(r.Turns), 1e-6)
		require.InDelta(t, float64(samples)/audio.SampleRate, covered(r.Exclusive), 1e-6)
		seen := 0
		for _, turn := range r.Turns {
			require.LessOrEqual(t, turn.Speaker, seen)
			seen = max(seen, turn.Speaker+1)
		}
	})
}
