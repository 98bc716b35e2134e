package mediafiles

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWAVHeader(t *testing.T) {
	assert.Equal(t, "RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x08\x00\x00\x00",
		string(WAVHeader(16000, 8)))
	long := WAVHeader(16000, math.MaxUint32)
	assert.Equal(t, "\xff\xff\xff\xff", string(long[4:8]))
	assert.Equal(t, "\xff\xff\xff\xff", string(long[40:]))
}

func TestSamples16(t *testing.T) {
	assert.Equal(t, "\x00\x00\x00\x40\xff\xff\x00\x80\x00\x80\xff\x7f\xff\x7f", string(Samples16([]float32{0, 0.5, -1.0 / (1 << 15), -1, -2, 1, 2})))
}
