package diarize_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/voices"
)

// clip is a recording of one voice.
type clip struct {
	voice  string
	vector []float32
}

// clips embeds the recordings VOICE_N.flac of a folder, and VOICE_N.ogg of its
// folders.
func (l listener) clips(t *testing.T, folder string) []clip {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.flac"))
	require.NoError(t, err)
	compressed, err := filepath.Glob(filepath.Join(folder, "*", "*.ogg"))
	require.NoError(t, err)
	files = append(files, compressed...)
	require.NotEmpty(t, files)
	opt := diarize.DefaultOptions()
	opt.NumSpeakers = 1
	var out []clip
	for _, file := range files {
		pcm := open(t, file)
		speech, err := vad.Detect(t.Context(), l.vad, pcm, vad.DefaultOptions())
		require.NoError(t, err)
		r, err := diarize.Diarize(t.Context(), l.voice, pcm, speech, opt)
		require.NoError(t, err)
		if len(r.Speakers) == 0 {
			t.Logf("%s: no speech", file)
			continue
		}
		require.Len(t, r.Speakers, 1, file)
		name := filepath.Base(file)
		out = append(out, clip{name[:strings.LastIndexByte(name, '_')], r.Speakers[0].Embedding})
	}
	return out
}

func cosine(a, b []float32) (c float64) {
	for i := range a {
		c += float64(a[i]) * float64(b[i])
	}
	return c
}

// pairs returns the cosines of all pairs of clips of the same voice and of
// different voices.
func pairs(clips []clip) (same, other []float64) {
	for i, a := range clips {
		for _, b := range clips[:i] {
			if c := cosine(a.vector, b.vector); a.voice == b.voice {
				same = append(same, c)
			} else {
				other = append(other, c)
			}
		}
	}
	return same, other
}

// equalError returns the error rate at the threshold where both kinds of error
// are equally frequent, and this threshold.
func equalError(same, other []float64) (rate, threshold float64) {
	slices.Sort(same)
	slices.Sort(other)
	for i, c := range same {
		missed := float64(i) / float64(len(same))
		at, _ := slices.BinarySearch(other, c)
		if alarms := 1 - float64(at)/float64(len(other)); missed >= alarms {
			return (missed + alarms) / 2, c
		}
	}
	return 1, 1
}

// TestVoiceOfAnExcerpt: a few seconds match the voice of their recording, and
// the segmenter also detects one voice in them.
func TestVoiceOfAnExcerpt(t *testing.T) {
	l := newListener(t)
	segmenter, err := networks.OpenSegmenter(demoModel(t, models.RoleSegmenter), networks.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { assert.NoError(t, segmenter.Close()) }()
	opt := diarize.DefaultOptions()
	opt.Segmenter = segmenter
	pcm := open(t, "../testdata/conversation.flac")
	whole := audio.FromSamples(slices.Clone(pcm.Samples(0, 30*audio.SampleRate)))
	_, all := l.diarize(t, whole, opt)
	require.NotEmpty(t, all.Speakers)
	for _, from := range []float64{11.5, 12.5} {
		start := int(from * audio.SampleRate)
		end := int(15.9 * audio.SampleRate)
		_, part := l.diarize(t, audio.FromSamples(slices.Clone(whole.Samples(start, end))), opt)
		require.Len(t, part.Speakers, 1)
		c := cosine(part.Speakers[0].Embedding, all.Speakers[0].Embedding)
		t.Logf("%.1f to 15.9 s: cosine %.3f", from, c)
		assert.Greater(t, c, 0.85)
	}
}

// TestKnownVoices measures how well voices are recognized: OTOGRAPH_VOICES_TUNE
// and OTOGRAPH_VOICES_TEST are folders of different voices, one
// subfolder for each. OTOGRAPH_EMBEDDER is a model folder whose embedder replaces the embedded one.
func TestKnownVoices(t *testing.T) {
	tune, test := os.Getenv("OTOGRAPH_VOICES_TUNE"), os.Getenv("OTOGRAPH_VOICES_TEST")
	if tune == "" || test == "" {
		t.Skip("OTOGRAPH_VOICES_TUNE and OTOGRAPH_VOICES_TEST are not set: no recordings of voices")
	}
	l := newListener(t)
	same, other := pairs(l.clips(t, tune))
	rate, threshold := equalError(same, other)
	t.Logf("tuning voices: equal error rate %.2f %% at a cosine of %.3f; 99.9 %% of pairs of two voices below %.3f", 100*rate, threshold, other[len(other)*999/1000])

	clips := l.clips(t, test)
	same, other = pairs(clips)
	rate, at := equalError(same, other)
	t.Logf("test voices: %d pairs of one voice, %d of two; equal error rate %.2f %% at %.3f", len(same), len(other), 100*rate, at)

	var register voices.Register
	model := strings.Repeat("0", 64)
	count, order := map[string]int{}, map[string]int{}
	for _, c := range clips {
		if _, ok := order[c.voice]; !ok {
			order[c.voice] = len(order)
		}
	}
	var tried, right, wrong, unknown, strangers, named int
	for pass := range 2 {
		clear(count)
		for _, c := range clips {
			n := count[c.voice]
			count[c.voice]++
			known := order[c.voice]%2 == 0
			enrolled := known && n < 2 // two recordings of every other voice
			if pass == 0 {
				if enrolled {
					_, err := register.Add(voices.Voice{Name: c.voice, Model: model, Consent: "synthetic", Vectors: [][]float32{c.vector}})
					require.NoError(t, err)
				}
				continue
			}
			if enrolled {
				continue
			}
			var m voices.Match
			if matches := register.Identify(model, []spec.SpeakerEmbedding{{Embedding: c.vector}}, networks.KnownVoice(l.model)); len(matches) > 0 {
				m = matches[0]
			}
			switch {
			case !known:
				strangers++
				if m.Name != "" {
					named++
				}
			default:
				tried++
				switch m.Name {
				case c.voice:
					right++
				case "":
					unknown++
				default:
					wrong++
				}
			}
		}
	}
	t.Logf("%d known voices: of %d recordings %d right, %d unknown, %d wrong; of %d recordings of strangers %d got a name",
		len(register.Voices), tried, right, unknown, wrong, strangers, named)
	assert.Zero(t, wrong)
}
