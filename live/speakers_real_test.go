//go:build real

package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/spec"
)

// conversation is a sound with the turns of its speakers.
type conversation struct {
	name    string
	samples []float32
	turns   []bench.SpeakerTurn
}

// TestRealSpeakers compares the speakers of live sessions, as first reported
// and with the later corrections, with the speakers of the whole recording:
// mixtures of people in testdata/real who speak in turn, and the recordings
// with an RTTM file in $OTOGRAPH_CONVERSATIONS. No live speaker becomes another
// person.
func TestRealSpeakers(t *testing.T) {
	dir := os.Getenv("OTOGRAPH_REAL_MODELS")
	if dir == "" {
		dir = "../.cache/models"
	}
	recognizer := filepath.Join(dir, "moonshine-tiny-en")
	if _, err := os.Stat(recognizer); err != nil {
		t.Skip(err)
	}
	set, err := library.Load{Files: map[models.Role]string{models.RoleOptimized: recognizer}, Fallback: published.Models()}.Open()
	require.NoError(t, err)
	p, err := otograph.Open(set, otograph.Config{OptimizedWords: true, Cores: 2})
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	var sum [3]bench.DER
	for _, c := range conversations(t) {
		opt := otograph.Options{Optimize: new(true), ASRLanguage: new("en"), EnableAudioEvents: new(false)}
		whole, err := p.Run(t.Context(), audio.Raw(c.samples, audio.SampleRate, 1), opt)
		require.NoError(t, err)
		first, corrected := spoken(t, p, opt, c.samples)
		for i, turns := range [][]bench.SpeakerTurn{turnsOf(whole.Segments), first, corrected} {
			d := bench.ScoreTurns(c.turns, turns, bench.DEROptions{Collar: 0.25})
			sum[i].Scored += d.Scored
			sum[i].Missed += d.Missed
			sum[i].FalseAlarm += d.FalseAlarm
			sum[i].Confusion += d.Confusion
			t.Logf("%s: %s %.1f %%, confused %.1f %%", c.name, []string{"whole", "live", "live, corrected"}[i], 100*d.Rate(), 100*d.Confusion/d.Scored)
		}
		assert.Empty(t, becameAnother(first, c.turns), "%s: speakers who became another person", c.name)
	}
	t.Logf("all, %.0f s of speech: whole %.1f %%, live %.1f %%, live and corrected %.1f %%; confused %.1f, %.1f, %.1f s", sum[0].Scored,
		100*sum[0].Rate(), 100*sum[1].Rate(), 100*sum[2].Rate(), sum[0].Confusion, sum[1].Confusion, sum[2].Confusion)
	assert.LessOrEqual(t, sum[2].Rate(), sum[0].Rate()+0.05)
}

// spoken returns the turns of a live session as first reported, and as
// corrected.
func spoken(t *testing.T, p *otograph.Pipeline, opt otograph.Options, samples []float32) (first, corrected []bench.SpeakerTurn) {
	s, err := live.Open(t.Context(), p, live.Options{Options: opt})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range s.Events() {
			assert.NoError(t, err)
			switch e.Kind {
			case spec.LiveFinal:
				first = append(first, turnsOf(e.Segments)...)
				corrected = append(corrected, turnsOf(e.Segments)...)
			case spec.LiveSpeakerChanged:
				corrected = change(corrected, e)
			}
		}
	}()
	for at := 0; at < len(samples); at += 4000 {
		require.NoError(t, s.Write(samples[at:min(at+4000, len(samples))]))
		for s.Behind() > 5 {
			time.Sleep(time.Millisecond)
		}
	}
	_, err = s.Close()
	require.NoError(t, err)
	<-done
	return first, corrected
}

// change assigns the parts of turns between two times to another speaker.
func change(turns []bench.SpeakerTurn, e spec.LiveEvent) (out []bench.SpeakerTurn) {
	for _, t := range turns {
		for _, piece := range [][2]float64{{t.Start, min(t.End, e.Start)}, {max(t.Start, e.Start), min(t.End, e.End)}, {max(t.Start, e.End), t.End}} {
			if piece[0] < piece[1] {
				name := t.Speaker
				if piece[0] >= e.Start && piece[1] <= e.End {
					name = e.To
				}
				out = append(out, bench.SpeakerTurn{Start: piece[0], End: piece[1], Speaker: name})
			}
		}
	}
	return out
}

// turnsOf returns sentences as turns; those without a speaker have the name "".
func turnsOf(list []otograph.Segment) (out []bench.SpeakerTurn) {
	for _, s := range list {
		out = append(out, bench.SpeakerTurn{Start: s.Start, End: s.End, Speaker: s.Speaker})
	}
	return out
}

// becameAnother returns the speakers whose person in the first half of their
// speech, for at least 3 s, is not the person of the second half, for at least
// 3 s.
func becameAnother(turns, truth []bench.SpeakerTurn) (names []string) {
	of := map[string][]bench.SpeakerTurn{}
	for _, turn := range turns {
		of[turn.Speaker] = append(of[turn.Speaker], turn)
	}
	delete(of, "")
	for name, list := range of {
		half := len(list) / 2
		a, early := person(list[:half], truth)
		b, late := person(list[half:], truth)
		if a != b && early >= 3 && late >= 3 {
			names = append(names, name+": "+a+", then "+b)
		}
	}
	return names
}

// person returns the person who speaks most in turns, and for how many seconds.
func person(turns, truth []bench.SpeakerTurn) (name string, seconds float64) {
	sum := map[string]float64{}
	for _, turn := range turns {
		for _, x := range truth {
			sum[x.Speaker] += max(0, min(turn.End, x.End)-max(turn.Start, x.Start))
		}
	}
	for who, s := range sum {
		if s > seconds || s == seconds && who < name {
			name, seconds = who, s
		}
	}
	return name, seconds
}

// conversations returns mixtures of two to four people, who speak 2 to 8 s in
// turn with pauses of 0.3 to 0.8 s, and the recordings of
// OTOGRAPH_CONVERSATIONS.
func conversations(t *testing.T) (list []conversation) {
	t.Helper()
	read := func(path string) []float32 {
		pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, pcm.Close()) }()
		return append([]float32(nil), pcm.Samples(0, pcm.Len())...)
	}
	for _, people := range [][]string{
		{"libri_6930_en.flac", "ljspeech_en.flac"},
		{"libri_7902_en.flac", "austen_0870_en.flac", "jfk.flac"},
		{"libri_2412_en.flac", "ami_abigail_en.flac", "sonnet1_en.mp3"},
		{"librispeech_en.flac", "ljspeech_002_0020_en.flac", "austen_0930_en.flac", "libri_6930_en.flac"},
	} {
		c := conversation{name: strings.Join(people, " + ")}
		rest := map[string][]float32{}
		for _, name := range people {
			rest[name] = read("../testdata/real/" + name)
		}
		for turn := 0; len(rest) > 0; turn++ {
			name := people[turn%len(people)]
			sound := rest[name]
			if len(sound) == 0 {
				delete(rest, name)
				continue
			}
			n := (2 + turn*5%7) * audio.SampleRate
			if len(sound)-n < audio.SampleRate {
				n = len(sound)
			}
			from := float64(len(c.samples)) / audio.SampleRate
			c.samples = append(c.samples, sound[:n]...)
			c.turns = append(c.turns, bench.SpeakerTurn{Start: from, End: float64(len(c.samples)) / audio.SampleRate, Speaker: name})
			c.samples = append(c.samples, make([]float32, (3+turn%6)*audio.SampleRate/10)...)
			rest[name] = sound[n:]
		}
		list = append(list, c)
	}
	marks, err := filepath.Glob(filepath.Join(os.Getenv("OTOGRAPH_CONVERSATIONS"), "*.rttm"))
	require.NoError(t, err)
	for _, path := range marks {
		base := strings.TrimSuffix(path, ".rttm")
		sounds, err := filepath.Glob(base + ".[fm]*")
		require.NoError(t, err)
		f, err := os.Open(path)
		require.NoError(t, err)
		turns, err := bench.ReadRTTM(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		list = append(list, conversation{filepath.Base(base), read(sounds[0]), turns})
	}
	return list
}
