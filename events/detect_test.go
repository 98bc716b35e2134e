package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// scripted computes scores with a function.
type scripted struct {
	grid   Grid
	frames int
	score  func(frame int, scores []float32)
	width  int // scores per frame, 0: spec.NumEventClasses
	err    error
}

func (s scripted) Grid() Grid   { return s.grid }
func (s scripted) Close() error { return nil }
func (s scripted) Scores(ctx context.Context, _ *audio.PCM, yield func(int, []float32) error) error {
	width := s.width
	if width == 0 {
		width = spec.NumEventClasses
	}
	scores := make([]float32, width)
	for i := range s.frames {
		if err := ctx.Err(); err != nil {
			return err
		}
		clear(scores)
		s.score(i, scores)
		if err := yield(i, scores); err != nil {
			return err
		}
	}
	return s.err
}

// row scores one class; each digit is a frame's score in tenths.
func row(class int, digits string) scripted {
	return scripted{frames: len(digits), score: func(i int, s []float32) { s[class] = float32(digits[i]-'0') / 10 }}
}

func seconds(n float64) *audio.PCM {
	return audio.FromSamples(make([]float32, int(n*audio.SampleRate)))
}

var (
	yamnetGrid = Grid{Window: 0.96, Hop: 0.48}
	clipGrid   = Grid{Window: 2, Hop: 1}
)

func TestDetect(t *testing.T) {
	type event struct{ start, end, confidence, peak float64 }
	for _, c := range []struct {
		name   string
		grid   Grid
		length float64
		scores string
		want   []event
	}{
		{"nothing", clipGrid, 6, "00320", nil},
		{"the threshold itself is not above it", clipGrid, 6, "00333", nil},
		{"one frame in the middle", clipGrid, 6, "00500", []event{{2.5, 3.5, 0.5, 0.5}}},
		{"the first frame speaks for the beginning", clipGrid, 6, "50000", []event{{0, 1.5, 0.5, 0.5}}},
		{"the last for the end", clipGrid, 5.8, "00006", []event{{4.5, 5.8, 0.6, 0.6}}},
		{"the whole", clipGrid, 6, "45678", []event{{0, 6, 0.6, 0.8}}},
		{"a pause of one second is closed, its frame does not count", clipGrid, 8, "0060800", []event{{2.5, 5.5, 0.7, 0.8}}},
		{"a pause of two seconds is not", clipGrid, 8, "0600800", []event{{1.5, 2.5, 0.6, 0.6}, {4.5, 5.5, 0.8, 0.8}}},
		{"half-second frames: two missing", yamnetGrid, 5, "0600600000", []event{{0.72, 2.64, 0.6, 0.6}}},
		{"half-second frames: three missing", yamnetGrid, 5, "0600060000", []event{{0.72, 1.2, 0.6, 0.6}, {2.64, 3.12, 0.6, 0.6}}},
		{"shorter than a window", yamnetGrid, 0.3, "9", []event{{0, 0.3, 0.9, 0.9}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const class = 300
			tagger := row(class, c.scores)
			tagger.grid = c.grid
			got, err := Detect(t.Context(), tagger, seconds(c.length), DefaultOptions())
			require.NoError(t, err)
			require.Len(t, got, len(c.want))
			for i, w := range c.want {
				assert.Equal(t, class, got[i].Class.Index)
				assert.Equal(t, w.start, got[i].Start)
				assert.Equal(t, w.end, got[i].End)
				assert.InDelta(t, w.confidence, got[i].Confidence, 1e-6)
				assert.InDelta(t, w.peak, got[i].Peak, 1e-6)
			}
		})
	}
}

// TestUnsureSoundsBesideSpeech checks that an unsure sound close to speech is
// omitted, and that a sure or a distant one stays.
func TestUnsureSoundsBesideSpeech(t *testing.T) {
	const dog, music, rain = 69, 132, 283
	tagger := scripted{grid: clipGrid, frames: 30, score: func(i int, s []float32) {
		switch i {
		case 2:
			s[0], s[music] = 0.9, 0.45
		case 5:
			s[dog] = 0.49
		case 6:
			s[music], s[rain] = 0.5, 0.9
		case 7:
			s[music] = 0.4
		case 20:
			s[dog] = 0.31
		}
	}}
	got, err := Detect(t.Context(), tagger, seconds(31), DefaultOptions())
	require.NoError(t, err)
	var at []string
	for _, e := range got {
		at = append(at, fmt.Sprintf("%s %g", e.Class.DisplayName, e.Start))
	}
	assert.Equal(t, []string{"Speech 2.5", "Music 6.5", "Dog 20.5"}, at)
}

func TestOrderAndFilter(t *testing.T) {
	tagger := scripted{grid: clipGrid, frames: 9, score: func(i int, s []float32) {
		switch i {
		case 2:
			s[500], s[0], s[137] = 0.9, 0.5, 0.4
		case 3:
			s[500] = 0.9
		case 0:
			s[137] = 0.5
		case 7:
			s[0] = 0.31
		}
	}}
	names := func(events []Event) (out []string) {
		for _, e := range events {
			out = append(out, e.Class.DisplayName)
		}
		return out
	}
	got, err := Detect(t.Context(), tagger, seconds(10), DefaultOptions())
	require.NoError(t, err)
	classes := spec.EventClasses()
	assert.Equal(t, []string{classes[137].DisplayName, "Speech", classes[500].DisplayName, "Speech"}, names(got))
	opt := Options{Threshold: 0.3, Classes: []string{"Speech", "Speech"}}
	got, err = Detect(t.Context(), tagger, seconds(10), opt)
	require.NoError(t, err)
	assert.Equal(t, []string{"Speech", "Speech"}, names(got))
}

func TestOptionErrors(t *testing.T) {
	for _, threshold := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		_, err := Options{Threshold: threshold}.wanted()
		require.ErrorIs(t, err, ErrOptions)
		assert.ErrorContains(t, err, "audio_events_threshold")
	}
	_, err := Detect(t.Context(), row(0, "0"), seconds(1), Options{Classes: []string{"Speach"}})
	require.ErrorIs(t, err, ErrOptions)
	assert.ErrorContains(t, err, `audio_events_classes: there is no class "Speach"; the nearest is "Speech"`)
	_, err = DefaultOptions().wanted()
	assert.NoError(t, err)
}

// skipping leaves out the first frame.
type skipping struct{ scripted }

func (s skipping) Scores(_ context.Context, _ *audio.PCM, yield func(int, []float32) error) error {
	return yield(1, make([]float32, spec.NumEventClasses))
}

func TestTaggerFaults(t *testing.T) {
	broken := row(0, "55")
	broken.grid, broken.err = clipGrid, errors.New("no power")
	_, err := Detect(t.Context(), broken, seconds(3), DefaultOptions())
	assert.ErrorIs(t, err, broken.err)
	narrow := row(0, "55")
	narrow.grid, narrow.width = clipGrid, 520
	_, err = Detect(t.Context(), narrow, seconds(3), DefaultOptions())
	assert.ErrorContains(t, err, "frame 0 with 520 scores")
	_, err = Detect(t.Context(), row(0, "5"), seconds(3), DefaultOptions())
	assert.ErrorContains(t, err, "windows of 0 s")
	_, err = Detect(t.Context(), skipping{narrow}, seconds(3), DefaultOptions())
	assert.ErrorContains(t, err, "gave frame 1, expected frame 0")
	nan := scripted{grid: clipGrid, frames: 3, score: func(_ int, s []float32) { s[4] = float32(math.NaN()) }}
	got, err := Detect(t.Context(), nan, seconds(4), DefaultOptions())
	require.NoError(t, err)
	assert.Empty(t, got)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ok := row(0, "5")
	ok.grid = clipGrid
	_, err = Detect(ctx, ok, seconds(3), DefaultOptions())
	assert.ErrorIs(t, err, context.Canceled)
}

// TestEventsInvariants checks that events of a class do not touch, are within
// the recording and in order, and are exactly the frames whose rounded score is
// above the threshold.
func TestEventsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		grid := rapid.SampledFrom([]Grid{yamnetGrid, clipGrid, {Window: 1, Hop: 1}, {Window: 10, Hop: 5}}).Draw(t, "grid")
		frames := rapid.IntRange(1, 60).Draw(t, "frames")
		length := float64(frames-1)*grid.Hop + grid.Window*(0.6+0.4*r.Float64())
		threshold := rapid.Float64Range(0, 1).Draw(t, "threshold")
		scores := make([][3]float32, frames)
		for i := range scores {
			for c := range scores[i] {
				scores[i][c] = r.Float32()
				if i > 0 && r.IntN(3) > 0 {
					scores[i][c] = scores[i-1][c]
				}
			}
		}
		pcm := seconds(length)
		got, err := Detect(context.Background(), scripted{grid: grid, frames: frames, score: func(i int, s []float32) {
			copy(s[10:], scores[i][:])
		}}, pcm, Options{Threshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		last := map[int]float64{}
		for i, e := range got {
			if e.Start < 0 || e.End < e.Start || e.End > pcm.Duration() || e.Confidence != round4(e.Confidence) || !(e.Confidence > threshold) || e.Peak < e.Confidence-1e-6 {
				t.Fatalf("event %+v in %v s", e, pcm.Duration())
			}
			if i > 0 && (e.Start < got[i-1].Start || e.Start == got[i-1].Start && e.Class.Index <= got[i-1].Class.Index) {
				t.Fatalf("order: %+v after %+v", e, got[i-1])
			}
			if before, ok := last[e.Class.Index]; ok && e.Start-before <= closeGap-0.011 {
				t.Fatalf("a pause of %v s was not closed", e.Start-before)
			}
			last[e.Class.Index] = e.End
		}
		for i := range scores {
			for c := range scores[i] {
				start, end := grid.cell(i)
				middle := min((start+end)/2, pcm.Duration()-0.006)
				inside := false
				for _, e := range got {
					inside = inside || e.Class.Index == 10+c && e.Start <= middle+0.006 && middle <= e.End+0.006
				}
				if round4(float64(scores[i][c])) > threshold && !inside {
					t.Fatalf("no event contains frame %d of class %d: %+v", i, 10+c, got)
				}
			}
		}
	})
}

// TestRoundedConfidenceExceedsTheThreshold checks that a score that rounds to the
// threshold does not exceed it, regardless of further digits.
func TestRoundedConfidenceExceedsTheThreshold(t *testing.T) {
	for score, above := range map[float32]bool{0.29999: false, 0.3: false, 0.30004: false, 0.30006: true, 0.3001: true} {
		tagger := scripted{grid: clipGrid, frames: 4, score: func(_ int, s []float32) { s[9] = score }}
		got, err := Detect(t.Context(), tagger, seconds(5), DefaultOptions())
		require.NoError(t, err)
		require.Len(t, got, map[bool]int{true: 1}[above], "%v", score)
		for _, e := range got {
			assert.Equal(t, 0.3001, e.Confidence)
		}
	}
}

// TestEventsEndInsideTheRecording checks that an end that rounds up is clipped
// to the last whole hundredth of the recording (an earlier version returned
// 1.065 s for seed 8047384915573686741).
func TestEventsEndInsideTheRecording(t *testing.T) {
	for _, c := range []struct {
		samples int
		end     float64
	}{{17040, 1.06}, {17120, 1.07}, {17039, 1.06}, {4640, 0.29}, {16000, 1}, {100, 0}} {
		tagger := scripted{grid: clipGrid, frames: 1, score: func(_ int, s []float32) { s[3] = 0.9 }}
		pcm := audio.FromSamples(make([]float32, c.samples))
		got, err := Detect(t.Context(), tagger, pcm, DefaultOptions())
		require.NoError(t, err)
		require.Len(t, got, 1)
		assert.Equal(t, c.end, got[0].End, "%d samples", c.samples)
		assert.LessOrEqual(t, got[0].End, pcm.Duration())
		assert.LessOrEqual(t, got[0].Start, got[0].End)
	}
}

// TestMemoryDoesNotGrowOverFiveHours checks that allocations do not grow with the number
// of frames.
func TestMemoryDoesNotGrowOverFiveHours(t *testing.T) {
	spec.EventClasses() // parsed once
	frames := int(5 * 3600 / 0.48)
	tagger := scripted{grid: yamnetGrid, frames: frames, score: func(i int, s []float32) {
		s[7] = float32(i%1000) / 1000
	}}
	pcm := audio.FromSamples(make([]float32, 1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := Detect(t.Context(), tagger, pcm, DefaultOptions())
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Len(t, got, frames/1000+1)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
