//go:build long

package demo_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models/demo"
)

// TestDemoDoubtfulWords measures what it says of a word of the standard tier that the
// CTC model does not hear it: how many right and how many wrong words are marked,
// in clean recordings of the evaluation set and in noise. No word is dropped.
func TestDemoDoubtfulWords(t *testing.T) {
	items, err := bench.Load(filepath.Join("..", "..", "testdata", "demo", "manifest.jsonl"))
	require.NoError(t, err)
	p, err := otograph.Open(demo.Models())
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	rng := rand.New(rand.NewPCG(3, 5))
	for _, snr := range []float64{math.Inf(1), 10, 3} {
		var right, wrong, rightMarked, wrongMarked int
		for i, item := range items {
			if i%8 != 0 || *item.Text == "" || item.Language == "zh" || strings.Contains(item.Path, "long") {
				continue
			}
			res, err := p.Run(t.Context(), noisy(t, item.Path, snr, rng), otograph.Options{
				EnableDiarize: new(false), EnableAudioEvents: new(false), ASRLanguage: &item.Language, Optimize: new(false),
			})
			require.NoError(t, err)
			said := plainWords(*item.Text)
			for _, s := range res.Segments {
				for _, w := range s.Words {
					for _, text := range plainWords(w.Word) {
						// one of the words said, each once: near enough to count
						k := slices.Index(said, text)
						switch {
						case k >= 0:
							said[k] = ""
							right++
							rightMarked += count(w.Doubtful)
						default:
							wrong++
							wrongMarked += count(w.Doubtful)
						}
					}
				}
			}
		}
		t.Logf("%v dB: marked %d of %d right and %d of %d wrong words", snr, rightMarked, right, wrongMarked, wrong)
		if math.IsInf(snr, 1) {
			assert.Zero(t, rightMarked, "right words in doubt")
		} else {
			assert.LessOrEqual(t, rightMarked*20, right, "right words in doubt")
			assert.GreaterOrEqual(t, wrongMarked*3, wrong, "wrong words in doubt")
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// noisy returns a recording with white noise so many dB below its speech.
func noisy(t *testing.T, path string, snr float64, rng *rand.Rand) otograph.Source {
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	samples := slices.Clone(pcm.Samples(0, pcm.Len()))
	var power float64
	for _, x := range samples {
		power += float64(x) * float64(x) / float64(len(samples))
	}
	level := math.Sqrt(power * math.Pow(10, -snr/10))
	for i := range samples {
		samples[i] += float32(level * rng.NormFloat64())
	}
	return audio.Raw(samples, audio.SampleRate, 1)
}
