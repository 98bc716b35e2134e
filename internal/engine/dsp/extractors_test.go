package dsp

import (
	"math"
	"math/cmplx"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowPower computes |X|² of one windowed frame from the definition, in
// float64.
func slowPower(frame []float64, fft int) []float64 {
	out := make([]float64, fft/2+1)
	for k := range out {
		var s complex128
		for i, v := range frame {
			s += complex(v, 0) * cmplx.Exp(complex(0, -2*math.Pi*float64(k*i%fft)/float64(fft)))
		}
		out[k] = real(s)*real(s) + imag(s)*imag(s)
	}
	return out
}

// TestSpeechbrainFbankByDefinition recomputes a few frames in float64 directly
// from the published description, without any code of the extractor.
func TestSpeechbrainFbankByDefinition(t *testing.T) {
	x := excerpt(t)
	m := NewSpeechbrainFbank(80)
	require.Equal(t, 101, m.Frames(len(x)))
	got := make([]float32, 101*80)
	require.Equal(t, 101, m.Compute(got, x))
	SubtractMean(got, 101, 80)

	toMel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	toHz := func(m float64) float64 { return 700 * (math.Pow(10, m/2595) - 1) }
	var hz [82]float64
	for i := range hz {
		hz[i] = toHz(toMel(8000) * float64(i) / 81)
	}
	want := make([]float64, 101*80)
	top := math.Inf(-1)
	for f := range 101 {
		frame := make([]float64, 400)
		for i := range frame {
			if j := f*160 - 200 + i; j >= 0 && j < len(x) {
				frame[i] = float64(x[j]) * (0.54 - 0.46*math.Cos(2*math.Pi*float64(i)/400))
			}
		}
		p := slowPower(frame, 400)
		for b := range 80 {
			half := hz[b+1] - hz[b]
			var e float64
			for k, v := range p {
				s := (float64(k)*40 - hz[b+1]) / half
				e += v * max(0, min(1+s, 1-s))
			}
			want[f*80+b] = 10 * math.Log10(max(e, 1e-10))
			top = max(top, want[f*80+b])
		}
	}
	for b := range 80 {
		var mean float64
		for f := range 101 {
			want[f*80+b] = max(want[f*80+b], top-80)
			mean += want[f*80+b] / 101
		}
		for f := range 101 {
			assert.InDelta(t, want[f*80+b]-mean, got[f*80+b], 5e-3, "frame %d band %d", f, b)
		}
	}
}

// TestCEDMelByDefinition does the same for the CED recipe.
func TestCEDMelByDefinition(t *testing.T) {
	x := excerpt(t)[:8000]
	m := NewCEDMel()
	n := m.Frames(len(x))
	require.Equal(t, 51, n)
	got := make([]float32, n*64)
	m.Compute(got, x)
	toMel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	want := make([]float64, n*64)
	top := math.Inf(-1)
	for f := range n {
		frame := make([]float64, 512)
		for i := range frame {
			j := f*160 - 256 + i
			if j < 0 {
				j = -j
			}
			if j >= len(x) {
				j = 2*len(x) - 2 - j
			}
			frame[i] = float64(x[j]) * (0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/512))
		}
		p := slowPower(frame, 512)
		hz := func(i int) float64 { return 700 * (math.Pow(10, toMel(8000)*float64(i)/65/2595) - 1) }
		for b := range 64 {
			l, c, r := hz(b), hz(b+1), hz(b+2)
			var e float64
			for k, v := range p {
				h := float64(k) * 31.25
				e += v * max(0, min((h-l)/(c-l), (r-h)/(r-c)))
			}
			want[f*64+b] = 10 * math.Log10(max(e, 1e-10))
			top = max(top, want[f*64+b])
		}
	}
	for i := range want {
		assert.InDelta(t, max(want[i], top-120), got[i], 0.02, "value %d", i) // dB
	}
}

// TestNeMo128ByDefinition computes one frame by the definition, because the
// 128-band bank of Parakeet has no stored reference.
func TestNeMo128ByDefinition(t *testing.T) {
	x := excerpt(t)
	m := NewNeMoMel(128)
	got := make([]float32, m.Frames(len(x))*128)
	m.Compute(got, x)
	bank := edgesBank(128, 512, melEdges(128, slaneyMel, slaneyHz), true)
	for _, f := range []int{0, 1, 50, 99} {
		frame := make([]float64, 512)
		for i := range 400 {
			j := f*160 - 256 + 56 + i
			if j < 0 || j >= len(x) {
				continue
			}
			v := float64(x[j])
			if j > 0 {
				v -= 0.97 * float64(x[j-1])
			}
			frame[56+i] = v * (0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/399))
		}
		p := slowPower(frame, 512)
		for b, fl := range bank {
			var e float64
			for k, w := range fl.weights {
				e += float64(w) * p[fl.first+k]
			}
			assert.InDelta(t, math.Log(e+math.Pow(2, -24)), got[f*128+b], 2e-3, "frame %d band %d", f, b)
		}
	}
}

func TestFbankSineAndImpulse(t *testing.T) {
	o := DefaultFbankOptions()
	fb := NewFbank(o)
	sine := make([]float32, 1600)
	for i := range sine {
		sine[i] = float32(math.Sin(2 * math.Pi * 1000 * float64(i) / 16000))
	}
	out := make([]float32, fb.Frames(len(sine))*80)
	fb.Compute(out, sine)
	best := 0
	for b, v := range out[:80] {
		if v > out[best] {
			best = b
		}
	}
	// The loudest band must have a triangle that contains 1 kHz.
	lo, hi := kaldiMel(20), kaldiMel(8000)
	step := (hi - lo) / 81
	assert.InDelta(t, (kaldiMel(1000)-lo)/step-1, float64(best), 1)

	// Silence yields the floor in every band.
	fb.Compute(out, make([]float32, 1600))
	for _, v := range out {
		assert.InDelta(t, math.Log(1.1920929e-07), v, 1e-5)
	}
}

func TestFrameCounts(t *testing.T) {
	snip := NewFbank(DefaultFbankOptions())
	o := DefaultFbankOptions()
	o.SnipEdges = false
	mirror := NewFbank(o)
	for _, c := range []struct{ n, snip, mirror, nemo int }{
		{0, 0, 0, 0}, {1, 0, 0, 0}, {79, 0, 0, 0}, {80, 0, 1, 0}, {399, 0, 2, 2}, {400, 1, 3, 2}, {559, 1, 3, 3}, {560, 2, 4, 3}, {16000, 98, 100, 100},
	} {
		assert.Equal(t, c.snip, snip.Frames(c.n), c.n)
		assert.Equal(t, c.mirror, mirror.Frames(c.n), c.n)
		assert.Equal(t, c.nemo, NewNeMoMel(80).Frames(c.n), c.n)
	}
	// Signals shorter than half a window are mirrored more than once; the
	// result must be finite.
	for _, n := range []int{80, 81, 100, 161, 240} {
		x := noise(n, 3)
		out := make([]float32, mirror.Frames(n)*80)
		mirror.Compute(out, x)
		for _, v := range out {
			assert.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	}
	for _, n := range []int{0, 1, 2, 200, 512} {
		x := noise(n, 4)
		out := make([]float32, (n/160+1)*80)
		NewCEDMel().Compute(out, x)
		NewSpeechbrainFbank(80).Compute(out, x)
		for _, v := range out {
			assert.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0), "%d samples", n)
		}
	}
}

// TestFramesDoNotDependOnNeighbors checks that frames, which are computed
// eight at a time, are the same as if computed alone.
func TestFramesDoNotDependOnNeighbors(t *testing.T) {
	x := excerpt(t)
	fb := NewFbank(DefaultFbankOptions())
	all := make([]float32, fb.Frames(len(x))*80)
	fb.Compute(all, x)
	one := make([]float32, 80)
	for _, f := range []int{0, 1, 7, 8, 9, 42, 96, 97} {
		require.Equal(t, 1, fb.Compute(one, x[f*160:f*160+400]))
		assert.Equal(t, all[f*80:(f+1)*80], one, "frame %d", f)
	}
}

func TestExtractorsAreSafeForConcurrentUse(t *testing.T) {
	x := excerpt(t)
	fb := NewFbank(DefaultFbankOptions())
	want := make([]float32, fb.Frames(len(x))*80)
	fb.Compute(want, x)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got := make([]float32, len(want))
			for range 5 {
				fb.Compute(got, x)
				assert.Equal(t, want, got)
			}
		})
	}
	wg.Wait()
}

func TestStackFrames(t *testing.T) {
	// 13 frames of one value each: their index.
	src := make([]float32, 13)
	for i := range src {
		src[i] = float32(i)
	}
	dst := make([]float32, 7*LFRFrames(13, 6))
	require.Equal(t, 3, StackFrames(dst, src, 13, 1, 7, 6))
	assert.Equal(t, []float32{0, 0, 0, 0, 1, 2, 3}, dst[:7])
	assert.Equal(t, []float32{3, 4, 5, 6, 7, 8, 9}, dst[7:14])
	assert.Equal(t, []float32{9, 10, 11, 12, 12, 12, 12}, dst[14:])
	assert.Equal(t, 0, LFRFrames(0, 6))
	assert.Equal(t, 1, LFRFrames(1, 6))
	assert.Equal(t, 1, LFRFrames(6, 6))
	assert.Equal(t, 2, LFRFrames(7, 6))
}

func TestApplyCMVNAndTranspose(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 6}
	ApplyCMVN(x, []float32{-1, -2}, []float32{2, 10})
	assert.Equal(t, []float32{0, 0, 4, 20, 8, 40}, x)
	dst := make([]float32, 2*4)
	Transpose(dst, x, 3, 2, 4)
	assert.Equal(t, []float32{0, 4, 8, 0, 0, 20, 40, 0}, dst)
	SubtractMean(x, 3, 2)
	assert.Equal(t, []float32{-4, -20, 0, 0, 4, 20}, x)
	NormalizePerFeature(nil, 0, 80)
	one := []float32{3, 4}
	NormalizePerFeature(one, 1, 2)
	assert.Equal(t, []float32{0, 0}, one)
}

func TestComputingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	x := excerpt(t)
	fb, ne, ya, sb, ce := NewFbank(DefaultFbankOptions()), NewNeMoMel(80), NewYAMNetMel(), NewSpeechbrainFbank(80), NewCEDMel()
	dst := make([]float32, 101*80)
	lfr := make([]float32, 17*560)
	for name, f := range map[string]func(){
		"fbank":       func() { fb.Compute(dst, x) },
		"nemo":        func() { ne.Compute(dst, x); NormalizePerFeature(dst, 100, 80) },
		"yamnet":      func() { ya.Compute(dst, x) },
		"speechbrain": func() { sb.Compute(dst, x); SubtractMean(dst, 101, 80) },
		"ced":         func() { ce.Compute(dst, x) },
		"lfr":         func() { StackFrames(lfr, dst, 100, 80, 7, 6) },
	} {
		assert.Less(t, testing.AllocsPerRun(50, f), 1.0, name)
	}
}

// BenchmarkFeatures reports how many seconds of audio one core turns into
// features per second.
func BenchmarkFeatures(b *testing.B) {
	x := noise(20*16000, 1)
	dst := make([]float32, 2001*128)
	o := DefaultFbankOptions()
	mirror := o
	mirror.SnipEdges = false
	for name, f := range map[string]func(){
		"fbank80":       func() func() { fb := NewFbank(o); return func() { fb.Compute(dst, x) } }(),
		"fbank80nosnip": func() func() { fb := NewFbank(mirror); return func() { fb.Compute(dst, x) } }(),
		"nemo80":        func() func() { m := NewNeMoMel(80); return func() { m.Compute(dst, x) } }(),
		"nemo128":       func() func() { m := NewNeMoMel(128); return func() { m.Compute(dst, x) } }(),
		"yamnet":        func() func() { m := NewYAMNetMel(); return func() { m.Compute(dst, x) } }(),
		"speechbrain":   func() func() { m := NewSpeechbrainFbank(80); return func() { m.Compute(dst, x) } }(),
		"ced":           func() func() { m := NewCEDMel(); return func() { m.Compute(dst, x) } }(),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(20*float64(b.N)/b.Elapsed().Seconds(), "x-realtime")
		})
	}
}
