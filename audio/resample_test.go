package audio

import (
	"fmt"
	"testing"
)

func BenchmarkResample(b *testing.B) {
	for _, rate := range []int{8000, 12345, 44100, 48000, 96000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			src := make([]float32, rate)
			for i := range src {
				src[i] = float32(i%100) / 100
			}
			r, err := NewResampler(rate, SampleRate)
			if err != nil {
				b.Fatal(err)
			}
			var dst []float32
			for b.Loop() {
				dst = r.Process(dst[:0], src)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "xrealtime")
		})
	}
}
