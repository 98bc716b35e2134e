package wordtimes_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/wordtimes"
)

// TestScorePeaksAtWordStarts: among the borders within 0.1 s of a word's start,
// the most likely one is at the start.
func TestScorePeaksAtWordStarts(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "align", "testdata")
	data, err := os.ReadFile(filepath.Join(folder, "manifest.jsonl"))
	require.NoError(t, err)
	net := wordtimes.Borders()
	found, words := 0, 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		var item struct {
			File  string
			Words []struct {
				Word  string
				Start float64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &item))
		pcm, err := audio.Open(t.Context(), audio.File(filepath.Join(folder, item.File)), audio.Options{})
		require.NoError(t, err)
		sound := wordtimes.NewBorderSound(pcm, 0, pcm.Len()/160, []audio.Span{{End: pcm.Len()}})
		require.NoError(t, pcm.Close())
		before := ""
		for _, w := range item.Words {
			letters := net.Letters(before, w.Word)
			before = w.Word
			begin := int(math.Round(w.Start * 100))
			best, at := math.Inf(-1), 0
			for f := begin - 10; f <= begin+10; f++ {
				if s := net.Score(sound, f, &letters); s > best {
					best, at = s, f
				}
			}
			words++
			if at >= begin-3 && at <= begin+3 {
				found++
			}
		}
	}
	t.Logf("%d of %d words", found, words)
	assert.Greater(t, found, words*8/10)
}
