package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

func TestModelsFillEveryRole(t *testing.T) {
	set := Models()
	for _, role := range models.Roles() {
		m, err := set.Need(role)
		require.NoError(t, err)
		assert.Equal(t, role == models.RoleStandard || role == models.RoleOptimized, m.Demo, role)
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
	f := Models().All(models.RoleOptimized)[0].Main()
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
	total := len(whisper) + len(ctc) + len(ctcTokens) + len(ctcLM)
	assert.LessOrEqual(t, total, 13_900_000)
}

func TestSetsAreIndependent(t *testing.T) {
	first := Models()
	first.Models[0].Languages[0] = "xx"
	first.Models[1].WindowSeconds = 1
	assert.Equal(t, "en", Models().Models[0].Languages[0])
	assert.Equal(t, "en", first.Models[1].Languages[0])
	assert.Equal(t, 20.0, Models().Models[1].WindowSeconds)
}
