package subtitle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// TestPartsOfAWordFollowOneAnother: the cues of a sentence that the recognizer
// gives as one word share its time by their length.
func TestPartsOfAWordFollowOneAnother(t *testing.T) {
	for _, text := range []string{strings.Repeat("你好世界这是", 20), strings.Repeat("Donaudampfschiff", 15)} {
		var out strings.Builder
		cue := Cue{Start: 10, End: 34, Text: text, Words: []spec.Word{{Word: text, Start: 10, End: 34}}}
		require.NoError(t, SRT(&out, []Cue{cue}, Options{MaxColumns: 40, MaxLines: 1, MaxCPS: 20}))
		script, err := ParseScript([]byte(out.String()))
		require.NoError(t, err)
		require.Len(t, script.Cues, 6)
		for i, c := range script.Cues {
			assert.InDelta(t, 10+4*i, c.Start, 0.1, "%s", out.String())
		}
	}
}
