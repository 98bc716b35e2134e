package audio

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPeaks checks that there is one byte per fiftieth of a second, that
// negative samples count and that the last partial second has a peak.
func TestPeaks(t *testing.T) {
	samples := make([]float32, 3*320+1)
	samples[5], samples[320], samples[639], samples[960] = 0.25, -0.5, 0.1, 0.125
	assert.Equal(t, []byte{128, 255, 0, 64}, FromSamples(samples).Peaks())
	assert.Equal(t, []byte{0}, FromSamples(make([]float32, 1)).Peaks(), "silence")
	assert.Empty(t, FromSamples(nil).Peaks())
	assert.Len(t, FromSamples(make([]float32, 10*SampleRate)).Peaks(), 10*peaksPerSecond)

	long := make([]float32, 10*SampleRate)
	for i := range long[:SampleRate] { // a second of −0.5, then silence
		long[i] = -0.5
	}
	long[5*SampleRate+3] = 0.25
	want := make([]byte, 10*peaksPerSecond)
	for i := range peaksPerSecond {
		want[i] = 255
	}
	want[5*peaksPerSecond] = 128
	assert.Equal(t, want, FromSamples(long).Peaks())
	assert.Equal(t, make([]byte, 50), FromSamples(make([]float32, SampleRate)).Peaks(), "silence")
	assert.Equal(t, []byte{255}, FromSamples([]float32{1}).Peaks(), "a recording shorter than a stretch")
}
