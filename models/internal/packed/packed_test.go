package packed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

// split reorders data into byte planes, as tools/pack does.
func split(data []byte, stride int) []byte {
	if stride < 2 {
		return data
	}
	out := make([]byte, 0, len(data))
	for plane := range stride {
		for i := plane; i < len(data); i += stride {
			out = append(out, data[i])
		}
	}
	return out
}

// pack returns a file with content in the given number of byte planes.
func pack(t *testing.T, content []byte, planes int) *File {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	data := enc.EncodeAll(split(content, planes), nil)
	sum := sha256.Sum256(content)
	return &File{Name: "weights.onnx", Data: data, Planes: planes, Size: len(content), SHA256: hex.EncodeToString(sum[:])}
}

var content = bytes.Repeat([]byte("weights and biases, "), 1000)

func TestUnpack(t *testing.T) {
	for _, planes := range []int{1, 4} {
		data, err := pack(t, content, planes).Bytes()
		require.NoError(t, err)
		assert.Equal(t, content, data, "%d planes", planes)
	}
}

func TestUnpackedBytesAreFreed(t *testing.T) {
	p := pack(t, content, 4)
	data, err := p.Bytes()
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
	again, err := p.Bytes()
	require.NoError(t, err)
	assert.Equal(t, content, again)
}

func TestDamagedFileIsRefused(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"cut":     func(data []byte) []byte { return data[:len(data)/2] },
		"flipped": func(data []byte) []byte { data[len(data)/2] ^= 0x10; return data },
		"empty":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, planes := range []int{1, 4} {
				p := pack(t, content, planes)
				p.Data = damage(bytes.Clone(p.Data))
				_, err := p.Bytes()
				require.ErrorIs(t, err, models.ErrBroken)
				assert.ErrorContains(t, err, p.Name)
			}
		})
	}
}

func FuzzPlanes(f *testing.F) {
	f.Add([]byte("abcdefghij"), uint8(4))
	f.Add([]byte{}, uint8(2))
	f.Add([]byte("abc"), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, stride uint8) {
		assert.Equal(t, len(data), len(split(data, int(stride))))
		assert.Equal(t, string(data), string(join(split(data, int(stride)), int(stride))))
	})
}
