package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

// all holds the packed models, for tests that visit each.
var all = []*packed{whisper, ctc, ctcLM, vad, speaker, segmenter, tagger}

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

func TestUnpackedBytesAreFreed(t *testing.T) {
	p := &packed{name: vad.name, data: vad.data, planes: vad.planes, size: vad.size, sha256: vad.sha256}
	data, err := p.bytes()
	require.NoError(t, err)
	gone := make(chan struct{})
	runtime.AddCleanup(&data[0], func(struct{}) { close(gone) }, struct{}{})
	for collected := false; !collected; { // hangs if the bytes are still referenced
		runtime.GC()
		select {
		case <-gone:
			collected = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	again, err := p.bytes()
	require.NoError(t, err)
	assert.Len(t, again, vad.size)
}

func TestDamagedModelIsRefused(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"cut":     func(data []byte) []byte { return data[:len(data)/2] },
		"flipped": func(data []byte) []byte { data[len(data)/2] ^= 0x10; return data },
		"empty":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []*packed{vad, ctc} { // compressed and not
				damaged := damage(append([]byte(nil), *p.data...))
				broken := &packed{name: p.name, data: &damaged, planes: p.planes, size: p.size, sha256: p.sha256}
				_, err := broken.bytes()
				require.ErrorIs(t, err, models.ErrBroken)
				assert.ErrorContains(t, err, p.name)
			}
		})
	}
}

func TestEmbeddedSizeStaysSmall(t *testing.T) {
	total := len(ctcTokens)
	for _, p := range all {
		total += len(*p.data)
	}
	assert.LessOrEqual(t, total, 17_200_000)
	assert.LessOrEqual(t, len(ctcTokens)+len(*ctc.data)+len(*ctcLM.data)+len(*whisper.data), 14_400_000, "the two recognizers")
}

func TestSetsAreIndependent(t *testing.T) {
	first := Models()
	first.Models[0].Languages[0] = "xx"
	first.Models[1].WindowSeconds = 1
	assert.Equal(t, "en", Models().Models[0].Languages[0])
	assert.Equal(t, "en", first.Models[1].Languages[0])
	assert.Equal(t, 20.0, Models().Models[1].WindowSeconds)
}

func FuzzPlanes(f *testing.F) {
	f.Add([]byte("abcdefghij"), uint8(4))
	f.Add([]byte{}, uint8(2))
	f.Add([]byte("abc"), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, stride uint8) {
		assert.Equal(t, len(data), len(Split(data, int(stride))))
		assert.Equal(t, string(data), string(join(Split(data, int(stride)), int(stride))))
	})
}

// BenchmarkUnpack measures the cost of each model's first use, including the
// hash.
func BenchmarkUnpack(b *testing.B) {
	for _, p := range all {
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(int64(p.size))
			for b.Loop() {
				if _, err := p.unpack(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
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
