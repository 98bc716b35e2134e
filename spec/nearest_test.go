package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDidYouMean(t *testing.T) {
	for name, want := range map[string]string{
		"asr_beamsize":            "asr_beam_size",
		"Optimize":                "optimize",
		"optmize":                 "optimize",
		"beam_size":               "asr_beam_size",
		"diarize_min_speakers":    "min_speakers",
		"min_speaker":             "min_speakers",
		"unknown":                 "",
		"x":                       "",
		"":                        "",
		strings.Repeat("a", 5000): "",
	} {
		got := DidYouMean(name, optionNames())
		if want == "" {
			assert.Empty(t, got, "%.20q", name)
			continue
		}
		assert.Equal(t, `; did you mean "`+want+`"?`, got, name)
	}
	assert.Equal(t, `; did you mean "page_size"?`, DidYouMean("pagesize", []string{"page", "page_size"}), "an edit comes before a part")
}
