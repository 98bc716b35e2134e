package whisper

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/wordtimes"
	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// TestAttentionTimesWords compares the starts of words with those reported
// by the synthesizer. The demo model's alignment heads are unknown, so they are
// chosen.
func TestAttentionTimesWords(t *testing.T) {
	if emulated {
		t.Skip("a long recording")
	}
	folder := filepath.Join("..", "..", "align", "testdata")
	data, err := os.ReadFile(filepath.Join(folder, "manifest.jsonl"))
	require.NoError(t, err)
	var item struct {
		File, Language string
		Words          []struct {
			Word       string
			Start, End float64
		}
	}
	line, _, _ := strings.Cut(string(data), "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &item))
	pcm, err := audio.Open(t.Context(), audio.File(filepath.Join(folder, item.File)), audio.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, pcm.Close()) }()
	e := openDemo(t)
	o := asr.DefaultOptions()
	o.Language = item.Language
	speech := spans(item.Words[0].Start, item.Words[len(item.Words)-1].End)
	tr, err := e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	var words []asr.Word
	for _, s := range tr.Segments {
		words = append(words, s.Words...)
	}
	require.Len(t, words, len(item.Words), "%v", textsOf(tr))
	var off float64
	for i, w := range words {
		assert.False(t, w.Interpolated, w.Text)
		off += math.Abs(w.Start-item.Words[i].Start) / float64(len(words))
	}
	assert.Less(t, off, 0.06)
}

func TestAlignmentHeads(t *testing.T) {
	base := ggmlfile.Header{TextLayers: 6, TextHeads: 8, Vocabulary: 51865}
	heads, err := alignmentHeads(nil, base)
	require.NoError(t, err)
	assert.Len(t, heads, 8, "the published ones")
	heads, err = alignmentHeads([][2]int{{1, 7}, {5, 0}}, base)
	require.NoError(t, err)
	assert.Equal(t, [][2]int{{1, 7}, {5, 0}}, heads)
	for _, wrong := range [][2]int{{6, 0}, {0, 8}, {-1, 0}, {0, -1}} {
		_, err = alignmentHeads([][2]int{wrong}, base)
		assert.ErrorContains(t, err, "alignment heads: expected layers below 6 and heads below 8")
	}
	heads, err = alignmentHeads(nil, ggmlfile.Header{TextLayers: 3, TextHeads: 4, Vocabulary: 51865})
	require.NoError(t, err)
	assert.Nil(t, heads, "to be chosen")
}

func TestMeasuredTimes(t *testing.T) {
	said := func() []decode.Word {
		return []decode.Word{{Word: asr.Word{Text: " one"}}, {Word: asr.Word{Text: " two"}}, {Word: asr.Word{Text: " three"}}}
	}
	times := []wordtimes.Time{{Start: 1, End: 1.2}, {Start: 1.2, End: 1.5}, {Start: 6, End: 6.4}}
	window := decode.Window{Pieces: spans(0, 8), Speech: spans(1, 1.5, 3, 5, 5.6, 6.5)}
	p := passage{words: said(), from: 1, to: 7, passed: []decode.Skip{{Before: 1, Start: 1, End: 2}}}
	p.put(times, window)
	for i, w := range p.words {
		assert.Equal(t, times[i], wordtimes.Time{Start: w.Start, End: w.End})
		assert.False(t, w.Interpolated)
	}
	assert.Equal(t, []decode.Skip{{Before: 2, Start: 3, End: 5}}, p.passed, "speech of a second and more between two words")

	p = passage{words: said(), from: 1, to: 7}
	p.put([]wordtimes.Time{{Start: 1, End: 1.2}, {Start: 5.6, End: 5.8}, {Start: 8, End: 8.4}}, decode.Window{Pieces: spans(0, 8), Speech: spans(1, 1.5, 3, 5, 6, 7)})
	assert.Empty(t, p.passed, "a sound with few words")

	p = passage{words: said(), from: 1, to: 7}
	p.share(spans(1, 2, 6, 7))
	for _, w := range p.words {
		assert.True(t, w.Interpolated)
		assert.Greater(t, w.End, w.Start)
	}
}
