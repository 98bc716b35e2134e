//go:build long

package whisperfolder

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/test/modeltest"
)

// TestLargeModelFitsInLittleMemory converts a file in the shape of Whisper
// large-v3: 3.1 GB of zeros that occupy no disk space.
func TestLargeModelFitsInLittleMemory(t *testing.T) {
	dir := t.TempDir()
	modeltest.Place(t, filepath.Join(dir, configFile), []byte(`{"model_type": "whisper", "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "decoder_attention_heads": 20}`))
	modeltest.Place(t, filepath.Join(dir, "vocabulary.txt"), []byte(strings.Join(modeltest.Tokens(), "\n")[:strings.Index(strings.Join(modeltest.Tokens(), "\n"), "\n<|0.00|>")]))
	h := ggmlfile.Header{
		Vocabulary: 51866, AudioContext: 1500, AudioState: 1280, AudioHeads: 20, AudioLayers: 32,
		TextContext: 448, TextState: 1280, TextHeads: 20, TextLayers: 32, Mels: 128,
	}
	head, size := map[string]any{}, int64(0)
	for _, s := range ggmlfile.Tensors(h) {
		name := "model." + hfName(s.Name)
		head[name] = map[string]any{"dtype": "BF16", "shape": trimmed(shapeOf(s)), "data_offsets": []int64{size, size + 2*product(shapeOf(s))}}
		size += 2 * product(shapeOf(s))
	}
	text, err := json.Marshal(head)
	require.NoError(t, err)
	file, err := os.Create(filepath.Join(dir, weightsFile))
	require.NoError(t, err)
	defer file.Close()
	_, err = file.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...))
	require.NoError(t, err)
	require.NoError(t, file.Truncate(int64(8+len(text))+size))
	assert.Greater(t, size, int64(3e9))

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	f, err := Open(dir)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Write(io.Discard, ggmlfile.Q8_0, nil))
	runtime.ReadMemStats(&after)
	t.Logf("%.1f GB in %v, %d MB from the system", float64(size)/1e9, time.Since(begin).Round(time.Second), after.Sys>>20)
	assert.Less(t, after.Sys, uint64(300<<20), fmt.Sprintf("%d before", before.Sys))
}
