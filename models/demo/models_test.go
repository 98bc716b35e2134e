package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/packed"
	"github.com/otograph/otograph/models"
)

// all holds the packed models, for tests that visit each.
var all = []*packed.File{whisper, ctc, ctcLM, vad, speaker, segmenter, tagger}

func TestModelsFillEveryRole(t *testing.T) {
	set := Models()
	for _, role := range models.Roles() {
		m, err := set.Need(role)
		require.NoError(t, err)
		assert.True(t, m.Demo)
		assert.NotEmpty(t, m.License)
		served, ok := models.ContractRole(m.Contract)
		assert.True(t, ok, m.Contract)
		assert.Equal(t, role, served)
	}
	standard, _ := set.Role(models.RoleStandard)
	assert.Equal(t, 6.0, standard.WindowSeconds)
	optimized, ok := set.OptimizedFor("zh")
	require.True(t, ok)
	assert.Equal(t, 20.0, optimized.WindowSeconds)
	_, ok = set.OptimizedFor("ja")
	assert.False(t, ok, "the demo recognizer does not support Japanese")
	embedder, _ := set.Role(models.RoleEmbedder)
	assert.Equal(t, 0.60, embedder.SameSpeaker)
}

func TestEveryFileUnpacksToItsHash(t *testing.T) {
	for _, m := range Models().Models {
		for _, f := range m.Files {
			data, err := f.Bytes()
			require.NoError(t, err, f.Name)
			sum := sha256.Sum256(data)
			assert.Equal(t, f.SHA256, hex.EncodeToString(sum[:]), f.Name)
			assert.Equal(t, f.Size, int64(len(data)), f.Name)
		}
	}
}

func TestConcurrentCallersUnpackOnce(t *testing.T) {
	f := Models().All(models.RoleTagger)[0].Main()
	got := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			data, err := f.Data()
			if assert.NoError(t, err) {
				got[i] = data
			}
		})
	}
	wg.Wait()
	for _, data := range got {
		require.NotEmpty(t, data)
		assert.Same(t, &got[0][0], &data[0], "all callers share one copy")
	}
	runtime.KeepAlive(got)
}

func TestEmbeddedSizeStaysSmall(t *testing.T) {
	total := len(ctcTokens)
	for _, p := range all {
		total += len(*p.Data)
	}
	assert.LessOrEqual(t, total, 17_200_000)
	assert.LessOrEqual(t, len(ctcTokens)+len(*ctc.Data)+len(*ctcLM.Data)+len(*whisper.Data), 14_400_000, "the two recognizers")
}

func TestSetsAreIndependent(t *testing.T) {
	first := Models()
	first.Models[0].Languages[0] = "xx"
	first.Models[1].WindowSeconds = 1
	assert.Equal(t, "en", Models().Models[0].Languages[0])
	assert.Equal(t, "en", first.Models[1].Languages[0])
	assert.Equal(t, 20.0, Models().Models[1].WindowSeconds)
}

// TestStrangers: the vectors were computed by the embedded speaker model and
// are within the size limit.
func TestStrangers(t *testing.T) {
	assert.LessOrEqual(t, len(strangersI8), 50_000)
	list, err := strangers()
	require.NoError(t, err)
	assert.Len(t, list, 256)
	for _, v := range list {
		var largest float32
		for _, x := range v {
			largest = max(largest, x, -x)
		}
		assert.Equal(t, float32(127), largest)
	}
}
