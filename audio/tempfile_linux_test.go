package audio

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWithoutTemporaryFolder decodes recordings from a file and from a reader
// without a folder for temporary files: the bytes and samples are in memory, up
// to a limit.
func TestWithoutTemporaryFolder(t *testing.T) {
	needFFmpeg(t)
	const path = "testdata/formats/no_extension"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := Open(t.Context(), File(path), Options{})
	require.NoError(t, err)
	defer want.Close()
	o := Options{TempDir: t.TempDir() + "/missing"}
	for _, source := range []Source{File(path), Reader(bytes.NewReader(data), "a.flac")} {
		pcm, err := Open(t.Context(), source, o)
		require.NoError(t, err)
		assert.Equal(t, want.Samples(0, want.Len()), pcm.Samples(0, pcm.Len()))
		assert.Equal(t, want.Info(), pcm.Info())
		require.NoError(t, pcm.Close())
	}
	f, err := tempFile(o.TempDir)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte{1}, memoryLimit)
	assert.ErrorContains(t, unwritten("long.wav", "its samples", err), `"long.wav": its samples need more than 512 MiB, and the folder for temporary files cannot be written to; name another one by TMPDIR`)
	assert.ErrorIs(t, unwritten("long.wav", "its samples", err), syscall.ENOSPC, "a failure of the machine, not of the recording")
}
