package textfile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestEncodings: UTF-8 with and without a byte order mark and UTF-16 of either
// byte order yield the same text; anything else is an error that names the
// file.
func TestEncodings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	read := func(data []byte, most int64) (string, error) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return Read(path, most)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.NewReplacer("\x00", "", "\ufeff", "", "\ufffd", "").Replace(rapid.String().Draw(rt, "text"))
		units := utf16.Encode([]rune("\ufeff" + text))
		little, _ := binary.Append(nil, binary.LittleEndian, units)
		big, _ := binary.Append(nil, binary.BigEndian, units)
		for _, data := range [][]byte{[]byte(text), []byte("\ufeff" + text), little, big} {
			got, err := read(data, 1000)
			require.NoError(rt, err)
			require.Equal(rt, text, got)
		}
	})
	for name, data := range map[string]string{
		"Windows-1252": "Gr\xfc\xdfe", "UTF-16 without a mark": "I\x00 \x00", "half a character": "\xff\xfeI\x00 ", "UTF-32": "\xff\xfe\x00\x00I\x00\x00\x00",
	} {
		_, err := read([]byte(data), 1000)
		require.ErrorIs(t, err, ErrEncoding, name)
		assert.ErrorContains(t, err, path)
	}
	_, err := read([]byte("four"), 3)
	require.ErrorContains(t, err, "at most 3 bytes")
	_, err = Read(filepath.Join(t.TempDir(), "none"), 3)
	require.ErrorIs(t, err, os.ErrNotExist)
}
