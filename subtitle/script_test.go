package subtitle

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const srtScript = "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Good</i> morning,\r\nhow are you?\r\n\r\n2\r\n00:00:03,5 --> 01:00:04,000\r\n{\\an8}a < b & c\r\n"

func TestScriptKeepsItsLines(t *testing.T) {
	s, err := ParseScript([]byte(srtScript))
	require.NoError(t, err)
	require.Len(t, s.Cues, 2)
	assert.Equal(t, ScriptCue{Start: 1, End: 2.5, Lines: []string{"<i>Good</i> morning,", "how are you?"}}, s.Cues[0])
	assert.InDelta(t, 3.5, s.Cues[1].Start, 1e-9)
	assert.Equal(t, "Good morning, how are you?", s.Text(0))
	assert.Equal(t, "a < b & c", s.Text(1))

	s.Cues[0].Start = 0.25
	var srt, vtt bytes.Buffer
	require.NoError(t, s.Write(&srt, false))
	require.NoError(t, s.Write(&vtt, true))
	assert.Equal(t, "1\n00:00:00,250 --> 00:00:02,500\n<i>Good</i> morning,\nhow are you?\n\n2\n00:00:03,500 --> 01:00:04,000\n{\\an8}a < b & c\n\n", srt.String())
	assert.Equal(t, "WEBVTT\n\n00:00:00.250 --> 00:00:02.500\nGood morning,\nhow are you?\n\n00:00:03.500 --> 01:00:04.000\na &lt; b &amp; c\n\n", vtt.String())
}

func TestScriptOfWebVTT(t *testing.T) {
	s, err := ParseScript([]byte("WEBVTT - a title\n\nNOTE\nnobody reads this\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:02.000 line:0 align:start\n<v Ann>Fish &amp; chips\n- both -\n\n00:03.000 --> 00:04.000\n\n"))
	require.NoError(t, err)
	assert.True(t, s.VTT)
	require.Len(t, s.Cues, 1)
	assert.Equal(t, "line:0 align:start", s.Cues[0].Settings)
	assert.Equal(t, "Fish & chips - both -", s.Text(0))
	var vtt, srt bytes.Buffer
	require.NoError(t, s.Write(&vtt, true))
	assert.Equal(t, "WEBVTT - a title\n\nNOTE\nnobody reads this\n\nSTYLE\n::cue { color: red }\n\nintro\n00:00:01.000 --> 00:00:02.000 line:0 align:start\n<v Ann>Fish &amp; chips\n- both -\n\n", vtt.String())
	require.NoError(t, s.Write(&srt, false))
	assert.Equal(t, "1\n00:00:01,000 --> 00:00:02,000\nFish & chips\n- both -\n\n", srt.String())
}

func TestScriptRefusals(t *testing.T) {
	for in, says := range map[string]string{
		"":                                      "found no cue",
		"just a text\n":                         "found no cue",
		"\xff\xfe1\x00":                         "expected UTF-8",
		"1\n00:01 --> 00:02\na":                 "line 2: expected times",
		"1\n00:00:02,000 --> 00:00:01,000\na\n": "line 2: expected an end after the start",
	} {
		_, err := ParseScript([]byte(in))
		require.ErrorIs(t, err, ErrScript, "%q", in)
		assert.ErrorContains(t, err, says)
	}
}

// A script that is written and read again remains the same.
func FuzzScript(f *testing.F) {
	f.Add([]byte(srtScript))
	f.Add([]byte("WEBVTT\n\n00:01.000 --> 00:02.000 line:0\n<v Ann>Fish &amp; chips\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseScript(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, s.Write(&out, s.VTT))
		again, err := ParseScript(out.Bytes())
		if len(s.Cues) > 0 {
			require.NoError(t, err)
			require.Len(t, again.Cues, len(s.Cues))
			for i := range s.Cues {
				require.Equal(t, s.Text(i), again.Text(i))
				require.Equal(t, s.Cues[i].Name, again.Cues[i].Name)
				require.Equal(t, s.Cues[i].Blocks, again.Cues[i].Blocks)
			}
		}
		other := &bytes.Buffer{}
		require.NoError(t, s.Write(other, !s.VTT))
	})
}
