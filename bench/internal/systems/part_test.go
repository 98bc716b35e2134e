package systems

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench/internal/datasets"
)

// TestPartsOfTranscripts: a part of a recording gets the row with its offset,
// and the only part of a file the row of the file.
func TestPartsOfTranscripts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rows.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"audio_filepath":"x/a.wav","offset":0,"pred_text":"one"}
{"audio_filepath":"x/a.wav","offset":4.5,"pred_text":"two"}
{"audio_filepath":"x/b.wav","pred_text":"three"}`), 0o600))
	items := []datasets.Item{
		{Name: "a.wav", Path: "a.wav", Part: &datasets.Part{Length: 4.5}},
		{Name: "a@4.5.wav", Path: "a.wav", Part: &datasets.Part{Start: 4.5}},
		{Name: "b@2.wav", Path: "b.wav", Part: &datasets.Part{Start: 2}},
		{Name: "a@9.wav", Path: "a.wav", Part: &datasets.Part{Start: 9}},
	}
	e, err := Files(path, items)
	require.NoError(t, err)
	for i, want := range []string{"one", "two", "three"} {
		res, _, err := e.Transcribe(t.Context(), items[i])
		require.NoError(t, err)
		assert.Equal(t, want, text(res))
	}
	_, _, err = e.Transcribe(t.Context(), items[3])
	require.ErrorIs(t, err, os.ErrNotExist)
}
