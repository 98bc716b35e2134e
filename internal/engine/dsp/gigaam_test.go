package dsp

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gigaAM computes the features from their definition in double precision.
func gigaAM(x []float32, version int) [][]float64 {
	size, pad := 400, 200
	brain := func(v float64) float64 { return float64(float32(v)) }
	if version == 3 {
		size, pad = 320, 0
		brain = func(v float64) float64 {
			bits := math.Float32bits(float32(v))
			low := bits & 0xffff
			bits &^= 0xffff
			if low > 0x8000 || low == 0x8000 && bits&0x10000 != 0 {
				bits += 0x10000
			}
			return float64(math.Float32frombits(bits))
		}
	}
	padded := make([]float64, len(x)+2*pad)
	for i := range padded {
		j := i - pad
		if j < 0 {
			j = -j
		}
		if j >= len(x) {
			j = 2*len(x) - 2 - j
		}
		padded[i] = float64(x[j])
	}
	top := 2595 * math.Log10(1+8000.0/700)
	edge := func(i int) float64 { return 700 * (math.Pow(10, top*float64(i)/65/2595) - 1) }
	var rows [][]float64
	for at := 0; at+size <= len(padded); at += 160 {
		power := make([]float64, size/2+1)
		for k := range power {
			var sum complex128
			for n := range size {
				w := brain(0.5 - 0.5*math.Cos(2*math.Pi*float64(n)/float64(size)))
				sum += complex(padded[at+n]*w, 0) * cmplx.Exp(complex(0, -2*math.Pi*float64(k*n%size)/float64(size)))
			}
			power[k] = real(sum)*real(sum) + imag(sum)*imag(sum)
		}
		row := make([]float64, 64)
		for b := range row {
			for k, p := range power {
				hz := float64(k) * 16000 / float64(size)
				row[b] += p * brain(max(0, min((hz-edge(b))/(edge(b+1)-edge(b)), (edge(b+2)-hz)/(edge(b+2)-edge(b+1)))))
			}
			row[b] = math.Log(min(max(row[b], 1e-9), 1e9))
		}
		rows = append(rows, row)
	}
	return rows
}

func TestGigaAMMatchesItsDefinition(t *testing.T) {
	x := excerpt(t)[4000:8000]
	for _, version := range []int{2, 3} {
		m := NewGigaAMMel(version)
		want := gigaAM(x, version)
		n := m.Frames(len(x))
		require.Len(t, want, n)
		require.Equal(t, 64, m.Bands())
		got := make([]float32, n*64)
		m.Compute(got, x)
		for i, row := range want {
			for b, v := range row {
				assert.InDelta(t, v, got[64*i+b], 2e-3, "version %d, frame %d, band %d", version, i, b)
			}
		}
	}
	assert.Zero(t, NewGigaAMMel(3).Frames(319))
	assert.Equal(t, 1, NewGigaAMMel(3).Frames(320))
	assert.Equal(t, 1, NewGigaAMMel(2).Frames(0))
}
