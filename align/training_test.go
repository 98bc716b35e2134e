//go:build training

package align_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/engine/wordtimes"
)

// TestWriteTrainingData writes the border network's training data next to the
// recordings of OTOGRAPH_WORD_SET: NAME.fb with the bands of every 10 ms, and
// dump.jsonl with the frames of the tokens.
func TestWriteTrainingData(t *testing.T) {
	manifest := os.Getenv("OTOGRAPH_WORD_SET")
	items, err := bench.Load(manifest)
	require.NoError(t, err)
	l := openDemo(t)
	vocab, err := l.model.Vocabulary()
	require.NoError(t, err)
	out, err := os.Create(filepath.Join(filepath.Dir(manifest), "dump.jsonl"))
	require.NoError(t, err)
	defer out.Close()
	enc := json.NewEncoder(out)
	for _, item := range items {
		pcm, speech := l.open(t, item.Path)
		heard, err := l.model.Listen(context.Background(), pcm, speech, asr.Options{Language: item.Language})
		require.NoError(t, err)
		var rows bytes.Buffer
		require.NoError(t, binary.Write(&rows, binary.LittleEndian, wordtimes.BorderBands(pcm.Samples(0, pcm.Len()))))
		require.NoError(t, os.WriteFile(item.Path+".fb", rows.Bytes(), 0o666))
		var spans [][2]float64
		for _, s := range speech {
			from, to := s.Seconds()
			spans = append(spans, [2]float64{from, to})
		}
		require.NoError(t, enc.Encode(map[string]any{"file": item.Name, "words": align.Trace(vocab, heard, *item.Text), "speech": spans}))
	}
}
