package openai

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestUntranscribedNamesTheField: a failed task names the field at fault.
func TestUntranscribedNamesTheField(t *testing.T) {
	for reason, field := range map[string]string{
		"the file is damaged": "file", "known_speaker_references[]: number 1: no speech": "known_speaker_references[]",
		`transcribe: whisper: base: language: it supports en, de, not "yue": language not supported`: "language",
	} {
		assert.Equal(t, field, Untranscribed(reason).Param, reason)
	}
}
