package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestChangedOptions(t *testing.T) {
	assert.Empty(t, Options{}.Changed())
	assert.Empty(t, Options{ASRBeamSize: new(5), VADThreshold: new(0.35), EnableASR: new(true), Hotwords: []string{}}.Changed(), "defaults")
	level := TimestampSegment
	o := Options{Optimize: new(false), TimestampLevel: &level, ASRBeamSize: new(6), ASRTemperature: new(0.2), ASRBestOf: new(1), Hotwords: []string{"a"}}
	assert.Equal(t, []string{"optimize", "timestamp_level", "asr_beam_size", "asr_temperature", "asr_best_of", "hotwords"}, o.Changed())
	assert.Equal(t, []string{"asr_beam_size"}, Options{ASRBeamSize: new(5)}.Given())
}
