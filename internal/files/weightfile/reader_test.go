package weightfile

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReader reads with every size of a piece, also pieces that end inside of a
// number.
func TestReader(t *testing.T) {
	data := []byte{7, 0x34, 0x12, 0, 0, 0x78, 0x56, 0x34, 0x12, 'e', 'n', 'd'}
	for ahead := range int64(len(data) + 2) {
		r := NewReader(bytes.NewReader(data), int64(len(data)), ahead)
		assert.Equal(t, uint8(7), r.Uint8())
		assert.Equal(t, uint16(0x1234), r.Uint16())
		r.Skip(2)
		assert.Equal(t, uint32(0x12345678), r.Uint32())
		assert.Equal(t, "end", string(r.Bytes(3)))
		require.NoError(t, r.Err)
		assert.Equal(t, r.Size, r.At)
		assert.Zero(t, r.Uint16())
		require.EqualError(t, r.Err, "it ends at byte 12, expected 2 more bytes at 12")
		assert.False(t, r.Unread)
		r.Skip(-1)
		require.ErrorContains(t, r.Err, "2 more bytes", "the first error stays")
	}
}

// TestReaderFailure reads a file that is shorter than its given size.
func TestReaderFailure(t *testing.T) {
	r := NewReader(bytes.NewReader([]byte{1}), 8, 0)
	assert.Zero(t, r.Uint32())
	require.ErrorIs(t, r.Err, io.EOF)
	assert.True(t, r.Unread)
	assert.Nil(t, r.Bytes(1))
}
