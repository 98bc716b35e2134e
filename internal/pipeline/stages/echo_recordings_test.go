package stages

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestEchoes counts the lines of people's calls that remain on both channels,
// and the lines that are lost on both. OTOGRAPH_ECHOES is a folder that
// tools/ref/echoes.py made.
func TestEchoes(t *testing.T) {
	dir := os.Getenv("OTOGRAPH_ECHOES")
	if dir == "" {
		t.Skip("OTOGRAPH_ECHOES is not set: no calls of people")
	}
	type count struct{ lines, wrong int }
	double, lost := map[string]count{}, map[string]count{}
	data, err := os.ReadFile(filepath.Join(dir, "truth.jsonl"))
	require.NoError(t, err)
	for line := range bytes.Lines(data) {
		var call struct {
			File, Kind        string
			Own, Echo, Speech [2][][2]int
		}
		require.NoError(t, json.Unmarshal(line, &call))
		pcm, err := audio.Open(t.Context(), audio.File(filepath.Join(dir, call.File)), audio.Options{KeepChannels: true})
		require.NoError(t, err)
		sides := []Side{{Speech: &Speech{Spans: spansOf(call.Speech[0])}}, {Speech: &Speech{Spans: spansOf(call.Speech[1])}}}
		echoes(t.Context(), pcm.Channels(), sides)
		for c := range sides {
			own, kept := spansOf(call.Own[c]), sides[c].Speech.Spans
			d, l := double[call.Kind], lost[call.Kind]
			for _, s := range spansOf(call.Echo[c]) {
				alone := s.Len() - common(own, s)
				if alone < 4*audio.SampleRate/10 {
					continue
				}
				d.lines++
				var said []audio.Span // own words that are kept
				for _, k := range kept {
					for _, o := range own {
						said = append(said, audio.Span{Start: max(k.Start, o.Start), End: min(k.End, o.End)})
					}
				}
				if common(kept, s)-common(said, s) >= max(3*audio.SampleRate/10, 3*alone/10) {
					d.wrong++
				}
			}
			for _, s := range own {
				if s.Len() < 3*audio.SampleRate/10 {
					continue
				}
				if l.lines++; 10*(s.Len()-common(kept, s)) > 3*s.Len() {
					l.wrong++
				}
			}
			double[call.Kind], lost[call.Kind] = d, l
		}
		require.NoError(t, pcm.Close())
	}
	for kind, l := range lost {
		t.Logf("%s: %d of %d repeated lines kept, %d of %d own lines lost", kind, double[kind].wrong, double[kind].lines, l.wrong, l.lines)
		assert.LessOrEqual(t, 50*double[kind].wrong, double[kind].lines, "at most 2 %% of them twice")
		assert.LessOrEqual(t, 50*l.wrong, l.lines, "at most 2 %% of them lost")
	}
}

func spansOf(list [][2]int) (out []audio.Span) {
	for _, s := range list {
		out = append(out, audio.Span{Start: s[0], End: s[1]})
	}
	return out
}

// common returns the samples of s that are in the spans, which do not overlap.
func common(spans []audio.Span, s audio.Span) (n int) {
	for _, x := range spans {
		n += max(0, min(x.End, s.End)-max(x.Start, s.Start))
	}
	return n
}
