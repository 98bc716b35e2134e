package vad

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/audio"
)

// published is one file of testdata/published.
type published struct {
	Samples    int       `json:"samples"`
	Probs      []float32 `json:"probs"`
	Timestamps map[string]struct {
		Options struct {
			Threshold  float64 `json:"threshold"`
			Exit       float64 `json:"neg_threshold"`
			MinSpeech  float64 `json:"min_speech_duration_ms"`
			MinSilence float64 `json:"min_silence_duration_ms"`
			Pad        float64 `json:"speech_pad_ms"`
			Max        float64 `json:"max_speech_duration_s"`
		} `json:"options"`
		Segments [][2]int `json:"segments"`
	} `json:"timestamps"`
}

// onGrid returns the segments of a recording with the given number of samples, with
// the published padding and borders on the grid of Window, which Stream refines.
func onGrid(probs []float32, samples int, opt Options) []Segment {
	return padded(stretches(probs, samples, opt), samples, toSamples(opt.SpeechPad))
}

// stretches returns the segments before padding.
func stretches(probs []float32, samples int, opt Options) []Segment {
	c := newCutter(opt)
	for i, p := range probs {
		c.window(i*Window, float64(p))
	}
	c.flush(samples)
	return c.out
}

// padded widens the segments by pad samples without overlap.
func padded(list []Segment, samples int, pad float64) []Segment {
	for i := range list {
		if i == 0 {
			list[i].Start = int(max(0, float64(list[i].Start)-pad))
		}
		if i+1 < len(list) {
			widen(&list[i].End, &list[i+1].Start, pad)
		} else {
			list[i].End = int(min(float64(samples), float64(list[i].End)+pad))
		}
	}
	return list
}

func TestSegmentsMatchPublishedOnes(t *testing.T) {
	files, err := filepath.Glob("testdata/published/*.json")
	require.NoError(t, err)
	require.Len(t, files, 7)
	ms := func(v float64) float64 { return v / 1000 }
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var p published
		require.NoError(t, json.Unmarshal(raw, &p))
		require.Equal(t, Windows(p.Samples), len(p.Probs))
		require.Len(t, p.Timestamps, 6)
		for name, c := range p.Timestamps {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				got := onGrid(p.Probs, p.Samples, Options{
					Threshold: c.Options.Threshold, Exit: c.Options.Exit, MinSpeech: ms(c.Options.MinSpeech),
					MinSilence: ms(c.Options.MinSilence), SpeechPad: ms(c.Options.Pad), MaxSpeech: ms(c.Options.Max * 1000),
				})
				want := []Segment{}
				for _, s := range c.Segments {
					want = append(want, Segment{Start: s[0], End: s[1]})
				}
				assert.Equal(t, want, append([]Segment{}, got...))
			})
		}
	}
}

// probsOf reads windows from letters: s speech, m in between, anything else
// silence.
func probsOf(s string) []float32 {
	p := make([]float32, len(s))
	for i, c := range s {
		switch c {
		case 's':
			p[i] = 0.9
		case 'm':
			p[i] = 0.4
		default:
			p[i] = 0.05
		}
	}
	return p
}

func TestSegments(t *testing.T) {
	w := func(n float64) float64 { return n * 32 / 1000 }
	base := Options{Threshold: 0.5, MinSilence: w(2)}
	tests := []struct {
		name string
		in   string
		opt  func(*Options)
		want [][2]int // in windows
	}{
		{"silence", "........", nil, nil},
		{"nothing", "", nil, nil},
		{"one", "..ssss....", nil, [][2]int{{2, 6}}},
		{"to the very end", "..ssss", nil, [][2]int{{2, 6}}},
		{"short pause", "ss.ss....", nil, [][2]int{{0, 5}}},
		{"long pause", "ss...ss...", nil, [][2]int{{0, 2}, {5, 7}}},
		{"in between never begins", "..mmmm..", nil, nil},
		{"in between does not end", "ssmmmm....", nil, [][2]int{{0, 6}}},
		{"in between does not take an end back", "ss.mmm.ss....", nil, [][2]int{{0, 2}, {7, 9}}},
		{"too short", "..ss.....ssss....", func(o *Options) { o.MinSpeech = w(3) }, [][2]int{{9, 13}}},
		{"exactly the shortest is too short", "..sss.....", func(o *Options) { o.MinSpeech = w(3) }, nil},
		{"padded", "...ss.....", func(o *Options) { o.SpeechPad = w(2) }, [][2]int{{1, 7}}},
		{"padding stops at the ends", ".sssssss.", func(o *Options) { o.SpeechPad = w(4) }, [][2]int{{0, 9}}},
		{"padding is shared", "ss....ss..", func(o *Options) { o.SpeechPad = w(2.5) }, [][2]int{{0, 4}, {4, 10}}},
		// An end after five windows: the published code leaves room for one
		// more window.
		{"cut on the spot", "sssssssssss.....", func(o *Options) { o.MaxSpeech = w(5) }, [][2]int{{0, 5}, {6, 11}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := base
			if tt.opt != nil {
				tt.opt(&opt)
			}
			var want []Segment
			for _, s := range tt.want {
				want = append(want, Segment{Start: s[0] * Window, End: s[1] * Window})
			}
			assert.Equal(t, want, onGrid(probsOf(tt.in), len(tt.in)*Window, opt))
		})
	}
}

func TestCutAtTheLongestPause(t *testing.T) {
	opt := Options{Threshold: 0.5, MinSilence: 1, MaxSpeech: 20 * 0.032}
	// pauses of 4, 6 and 4 windows; all shorter than MinSilence
	in := "sss....ss......ss....sss"
	got := onGrid(probsOf(in), len(in)*Window, opt)
	require.Len(t, got, 2)
	assert.Equal(t, Segment{Start: 0, End: 9 * Window}, got[0])
	assert.Equal(t, Segment{Start: 15 * Window, End: 24 * Window}, got[1])
}

func TestSegmentsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probs := rapid.SliceOfN(rapid.Float32Range(0, 1), 0, 200).Draw(t, "probs")
		samples := max(0, len(probs)*Window-rapid.IntRange(0, Window-1).Draw(t, "short"))
		ms := func(name string, hi int) float64 {
			return float64(rapid.IntRange(0, hi).Draw(t, name)) / 1000
		}
		opt := Options{
			Threshold: rapid.Float64Range(0, 1).Draw(t, "threshold"), MinSpeech: ms("speech", 500),
			MinSilence: ms("silence", 500), SpeechPad: ms("pad", 200), MaxSpeech: ms("max", 3000),
		}
		if opt.validate() != nil {
			t.Fatal("made invalid options")
		}
		last := 0
		for _, s := range onGrid(probs, samples, opt) {
			if s.Start < last || s.End < s.Start || s.End > samples {
				t.Fatalf("segment %v after %d in %d samples", s, last, samples)
			}
			last = s.End
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	require.NoError(t, DefaultOptions().validate())
	for want, change := range map[string]func(*Options){
		"vad_threshold":      func(o *Options) { o.Threshold = 1.2 },
		"vad_min_speech_ms":  func(o *Options) { o.MinSpeech = -1 },
		"vad_min_silence_ms": func(o *Options) { o.MinSilence = -1 },
		"vad_speech_pad_ms":  func(o *Options) { o.SpeechPad = -1 },
	} {
		o := DefaultOptions()
		change(&o)
		assert.ErrorContains(t, o.validate(), want)
	}
	o := DefaultOptions()
	o.Threshold = math.NaN()
	assert.Error(t, o.validate())
	assert.InDelta(t, 0.2, DefaultOptions().exit(), 1e-9)
	assert.Equal(t, 0.01, Options{Threshold: 0.1}.exit())
}

type fixedModel []float32

func (m fixedModel) Probabilities(context.Context, *audio.PCM) ([]float32, error) { return m, nil }
func (fixedModel) Close() error                                                   { return nil }

func TestDetect(t *testing.T) {
	pcm := audio.FromSamples(make([]float32, 20*Window-7))
	m := fixedModel(probsOf("....ssssssssss......"))
	got, err := Detect(context.Background(), m, pcm, DefaultOptions())
	require.NoError(t, err)
	assert.Equal(t, []Segment{{Start: 4*Window - 480, End: 14*Window + 480}}, onGrid(m, pcm.Len(), DefaultOptions()), "the grid's borders")
	assert.Equal(t, []Segment{{Start: 4*Window - 331 - 480, End: 14*Window - 90 + 480}}, got, "refined by the probabilities alone: there is no sound")

	_, err = Detect(context.Background(), m[:19], pcm, DefaultOptions())
	assert.ErrorContains(t, err, "expected 20 probabilities for 10233 samples, the model gave 19")
	_, err = Detect(context.Background(), m, pcm, Options{Threshold: -1})
	assert.ErrorContains(t, err, "vad_threshold")
}
