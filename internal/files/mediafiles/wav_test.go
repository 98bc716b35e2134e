package mediafiles

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteWAV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wav")
	require.NoError(t, WriteWAV(path, []float32{0, 0.5, -1, 2}, 16000))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x08\x00\x00\x00"+
		"\x00\x00\x00\x40\x01\x80\xff\x7f", string(data))
}

func TestLongWAVStatesTheLargestSize(t *testing.T) {
	b := WAVHeader(16000, 5<<30)
	assert.Equal(t, []byte{255, 255, 255, 255}, b[4:8])
	assert.Equal(t, []byte{255, 255, 255, 255}, b[40:44])
}
