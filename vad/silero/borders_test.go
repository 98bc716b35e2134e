package silero

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/vad"
)

// placed returns a recording of faint noise with one stretch of speech whose
// first and last samples are known.
func placed(speech []float32, background float64, r *rand.Rand) (pcm *audio.PCM, start, end float64) {
	const most = -25.0 // dB below the loudest: a stretch begins and ends with sound
	loud := func(at int) float64 {
		var e float64
		for _, v := range speech[at : at+160] {
			e += float64(v) * float64(v)
		}
		return 10 * math.Log10(e/160+1e-12)
	}
	peak := math.Inf(-1)
	for at := 0; at+160 <= len(speech); at += 160 {
		peak = max(peak, loud(at))
	}
	from, to := 0, 0
	for to-from < audio.SampleRate/2 || loud(from) < peak+most || loud(to-160) < peak+most {
		from = r.IntN(len(speech) - 2*audio.SampleRate)
		to = from + audio.SampleRate/2 + r.IntN(audio.SampleRate)
	}
	offset := audio.SampleRate + r.IntN(10*vad.Window) // anywhere on the grid
	x := make([]float32, offset+to-from+audio.SampleRate+r.IntN(vad.Window))
	amplitude := math.Sqrt(3) * math.Pow(10, background/20)
	for i := range x {
		x[i] = float32(amplitude * (2*r.Float64() - 1))
	}
	for i, v := range speech[from:to] {
		x[offset+i] += v
	}
	return audio.FromSamples(x), float64(offset) / audio.SampleRate, float64(offset+to-from) / audio.SampleRate
}

// TestErrorOfSpeechBorders places speech with borders known to the sample and
// measures the error of the borders on the grid and of the refined ones.
func TestErrorOfSpeechBorders(t *testing.T) {
	m, speech := open(t, embedded(t), Options{}), jfk(t)
	opt := vad.DefaultOptions()
	opt.SpeechPad = 0
	for _, background := range []float64{-80, -60, -50} {
		r := rand.New(rand.NewPCG(7, 8))
		var grid, fine []float64 // seconds off
		for range 40 {
			pcm, start, end := placed(speech, background, r)
			probs, err := m.Probabilities(context.Background(), pcm)
			require.NoError(t, err)
			// The grid's borders: the first window that begins speech and the first after the last that continues it.
			first := slices.IndexFunc(probs, func(p float32) bool { return float64(p) >= opt.Threshold })
			after := len(probs)
			for after > 0 && float64(probs[after-1]) < opt.Threshold-0.15 {
				after--
			}
			refined, err := vad.Refined(probs, pcm, opt)
			require.NoError(t, err)
			if len(refined) == 0 {
				continue
			}
			compare := func(truth, published, refined float64) {
				if math.Abs(published-truth) < 0.3 { // a greater error means missed speech, not an inexact border
					grid, fine = append(grid, math.Abs(published-truth)), append(fine, math.Abs(refined-truth))
				}
			}
			from, to := vad.Segment{Start: first * vad.Window, End: after * vad.Window}.Seconds()
			refinedFrom, _ := refined[0].Seconds()
			compare(start, from, refinedFrom)
			_, refinedTo := refined[len(refined)-1].Seconds()
			compare(end, to, refinedTo)
		}
		require.GreaterOrEqual(t, len(fine), 70)
		slices.Sort(grid)
		slices.Sort(fine)
		at := func(list []float64, part float64) float64 { return 1000 * list[int(part*float64(len(list)-1))] }
		t.Logf("background %.0f dB, %d borders: on the grid %.1f ms off (median; 9 of 10 within %.1f ms), refined %.1f (%.1f)",
			background, len(fine), at(grid, 0.5), at(grid, 0.9), at(fine, 0.5), at(fine, 0.9))
		assert.LessOrEqual(t, at(fine, 0.5), 5.0)
		assert.LessOrEqual(t, at(fine, 0.9), 12.0)
	}
}
