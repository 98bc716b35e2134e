package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testRates = []int{8000, 11025, 12345, 15999, 22050, 24000, 32000, 44100, 48000, 96000, 191999}

func resampleAll(t testing.TB, from, to int, src []float32) []float32 {
	t.Helper()
	r, err := NewResampler(from, to)
	require.NoError(t, err)
	return r.Flush(r.Process(nil, src))
}

// tone returns a sine with a Blackman window, so that its spectrum is one
// narrow peak. The race detector would take longer than the test.
//
//go:norace
func tone(rate int, freq, seconds float64) []float32 {
	s := make([]float32, int(float64(rate)*seconds))
	for i := range s {
		u := 2 * math.Pi * float64(i) / float64(len(s))
		w := 0.42 - 0.5*math.Cos(u) + 0.08*math.Cos(2*u)
		s[i] = float32(w * math.Sin(2*math.Pi*freq*float64(i)/float64(rate)))
	}
	return s
}

func rms(s []float32) float64 {
	e := 0.0
	for _, x := range s {
		e += float64(x) * float64(x)
	}
	return math.Sqrt(e / float64(len(s)))
}

func decibel(ratio float64) float64 { return 20 * math.Log10(ratio+1e-12) }

// TestResamplerPassBand sweeps a sine through the pass band and checks level
// and waveform.
func TestResamplerPassBand(t *testing.T) {
	for _, rate := range testRates {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			nyquist := float64(min(rate, SampleRate)) / 2
			for _, part := range []float64{0.01, 0.1, 0.25, 0.5, 0.7, 0.8, 0.85, 0.9, passBand} {
				freq := part * nyquist
				got := resampleAll(t, rate, SampleRate, tone(rate, freq, 0.5))
				want := tone(SampleRate, freq, 0.5)
				n := min(len(got), len(want))
				// The windows of the two tones end at slightly different times
				// unless the rates divide evenly; the tolerance allows for
				// that.
				diff := make([]float32, n)
				for i := range diff {
					diff[i] = got[i] - want[i]
				}
				assert.InDelta(t, 0, decibel(rms(got)/rms(want)), 0.01, "level at %.0f Hz", freq)
				assert.Less(t, decibel(rms(diff)/rms(want)), -70.0, "error at %.0f Hz", freq)
			}
		})
	}
}

// TestResamplerStopBand sweeps a sine upwards from the lower Nyquist frequency
// and checks that nothing folds back.
func TestResamplerStopBand(t *testing.T) {
	for _, rate := range testRates {
		if rate <= SampleRate || rate == 24000 || rate == 32000 { // 48000 and 96000 are tested instead
			continue
		}
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			worst := math.Inf(-1)
			edge := SampleRate/2 + 20.0 // the window's own width
			for i := range 16 {
				freq := edge + (float64(rate)/2-edge)*float64(i)/16
				src := tone(rate, freq, 0.5)
				worst = max(worst, decibel(rms(resampleAll(t, rate, SampleRate, src))/rms(src)))
			}
			t.Logf("loudest alias %.1f dB", worst)
			assert.Less(t, worst, -90.0)
		})
	}
}

// TestResamplerImages checks that raising the rate does not mirror the signal
// above the old Nyquist frequency.
func TestResamplerImages(t *testing.T) {
	for _, rate := range []int{4000, 8000, 11025, 12345} {
		for _, part := range []float64{0.3, 0.6, passBand} {
			got := resampleAll(t, rate, SampleRate, tone(rate, part*float64(rate)/2, 1))
			// Resampling to the old rate and back isolates the tone's band; the
			// remainder is images.
			again := resampleAll(t, rate, SampleRate, resampleAll(t, SampleRate, rate, got))
			n := min(len(again), len(got))
			diff := make([]float32, n)
			for i := range diff {
				diff[i] = got[i] - again[i]
			}
			assert.Less(t, decibel(rms(diff)/rms(got)), -85.0, "%d Hz, %.2f of Nyquist", rate, part)
		}
	}
}

// TestResamplerImpulse checks that an impulse keeps its time and symmetry, and
// that its response sums to the ratio of the rates.
func TestResamplerImpulse(t *testing.T) {
	for _, rate := range testRates {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			src := make([]float32, rate)
			at := rate / 2
			// The next impulse that falls on an output sample, if the ratio has
			// one.
			for at*SampleRate%rate != 0 && at < rate/2+4000 {
				at++
			}
			src[at] = 1
			got := resampleAll(t, rate, SampleRate, src)
			require.Len(t, got, SampleRate)
			peak, sum := 0, 0.0
			for i, x := range got {
				sum += float64(x)
				if x > got[peak] {
					peak = i
				}
			}
			assert.InDelta(t, float64(at)*SampleRate/float64(rate), float64(peak), 0.51, "time")
			assert.InDelta(t, float64(SampleRate)/float64(rate), sum, 2e-3, "sum")
			if at*SampleRate%rate == 0 {
				for d := 1; d < 60; d++ {
					assert.InDelta(t, got[peak-d], got[peak+d], 1e-5, "symmetry at %d", d)
				}
			}
		})
	}
}

func TestResamplerConstant(t *testing.T) {
	for _, rate := range testRates {
		src := make([]float32, rate)
		for i := range src {
			src[i] = 0.5
		}
		got := resampleAll(t, rate, SampleRate, src)
		for _, x := range got[len(got)/4 : len(got)*3/4] {
			require.InDelta(t, 0.5, x, 1e-5, "%d Hz", rate)
		}
	}
}

// TestResamplerLength checks that n samples yield ⌈n·to/from⌉ samples, even for
// the shortest inputs.
func TestResamplerLength(t *testing.T) {
	for _, rate := range testRates {
		for _, n := range []int{0, 1, 2, 3, 100, 4097, 8192, 20011} {
			want := (n*SampleRate + rate - 1) / rate
			assert.Len(t, resampleAll(t, rate, SampleRate, make([]float32, n)), want, "%d samples at %d Hz", n, rate)
		}
	}
}

// TestResamplerChunks checks that the result is bit-identical for any split of
// the input, and that Flush appends to a reused slice.
func TestResamplerChunks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, rate := range testRates {
		src := make([]float32, 30011)
		for i := range src {
			src[i] = rnd.Float32()*2 - 1
		}
		want := resampleAll(t, rate, SampleRate, src)
		for range 4 {
			r, err := NewResampler(rate, SampleRate)
			require.NoError(t, err)
			var got, part []float32
			for rest := src; len(rest) > 0; {
				n := min(len(rest), 1+rnd.IntN([]int{3, 700, 20000}[rnd.IntN(3)]))
				part = r.Process(part[:0], rest[:n])
				got = append(got, part...)
				rest = rest[n:]
			}
			got = append(got, r.Flush(part[:0])...)
			require.Equal(t, want, got, "%d Hz", rate)
			assert.Empty(t, r.Flush(nil), "a second Flush")
		}
	}
}

func TestResamplerRates(t *testing.T) {
	for _, pair := range [][2]int{{0, 16000}, {16000, 0}, {-8000, 16000}, {1 << 30, 16000}} {
		_, err := NewResampler(pair[0], pair[1])
		assert.Error(t, err, pair)
	}
	same := []float32{1, 2, 3}
	assert.Equal(t, same, resampleAll(t, 16000, 16000, same))
}

// TestDot compares the vectorized inner loop with the portable one.
func TestDot(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for n := 8; n <= 600; n += 8 {
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = rnd.Float32()-0.5, rnd.Float32()-0.5
		}
		exact := 0.0
		for i := range a {
			exact += float64(a[i]) * float64(b[i])
		}
		assert.InDelta(t, exact, dot(a, b), 1e-5, n)
		assert.InDelta(t, exact, dotGo(a, b), 1e-5, n)
	}
}

// TestDotRow: three sums at a time equal single sums, to the last bit.
func TestDotRow(t *testing.T) {
	x := make([]float32, 600)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	for _, n := range []int{8, 24, 32, 40, 104} {
		for _, down := range []int{1, 3, 41} {
			for _, up := range []int{1, 2, 160} {
				for groups := 1; groups <= 3; groups++ {
					got := make([]float32, (3*groups-1)*up+1)
					dotRow(got, x[:n], x[5:], groups, down, up)
					for k := range 3 * groups {
						assert.Equal(t, dot(x[:n], x[5+k*down:][:n]), got[k*up], "%d of %d, %d apart", k, n, down)
					}
				}
			}
		}
	}
}

func BenchmarkResample(b *testing.B) {
	for _, rate := range []int{8000, 12345, 44100, 48000, 96000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			src := tone(rate, 440, 1)
			r, err := NewResampler(rate, SampleRate)
			require.NoError(b, err)
			var dst []float32
			for b.Loop() {
				dst = r.Process(dst[:0], src)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "xrealtime")
		})
	}
}
