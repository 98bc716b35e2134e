package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// TestStoredOptions: names that a newer release has stored are ignored, everything
// else is as strict as at the interface.
func TestStoredOptions(t *testing.T) {
	o, ignored, err := spec.DecodeStored([]byte(`{"asr_beam_size":3,"of_tomorrow":{"a":[1]},"of_tomorrow":2,"num_speakers":null}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"of_tomorrow", "of_tomorrow"}, ignored)
	assert.Equal(t, spec.Options{ASRBeamSize: new(3)}, o)
	for text, want := range map[string]string{
		`{"asr_beam_size":3,"asr_beam_size":3}`: "asr_beam_size: is given twice",
		`{"asr_beam_size":"3"}`:                 "asr_beam_size: must be an integer",
		`{"of_tomorrow":}`:                      "of_tomorrow: not valid JSON",
		`[]`:                                    "must be a JSON object",
	} {
		_, _, err := spec.DecodeStored([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}
