package weightfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func str(s string) []byte {
	return append(binary.LittleEndian.AppendUint16(nil, uint16(len(s)+1)), s+"\x00"...)
}

func words(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// number returns the number of a type in a file.
func number(typ Type) byte { return byte(slices.Index(CTranslate2Types, typ)) }

// sample returns a file of a version with a matrix of int8, its scale and a
// setting.
func sample(version uint32) []byte {
	head := join(words(version), str(WhisperSpec), words(3, 3))
	kind := func(typ Type, count uint32) []byte {
		if version >= 4 {
			return join([]byte{number(typ)}, words(count*uint32(sizes[typ])))
		}
		return join([]byte{byte(sizes[typ])}, words(count))
	}
	body := join(
		str("w/weight"), []byte{2}, words(2, 3), kind(I8, 6), make([]byte, 6),
		str("w/weight_scale"), []byte{1}, words(2), kind(F32, 2), make([]byte, 8),
		str("heads"), []byte{0}, kind(I16, 1), make([]byte, 2),
	)
	if version >= 3 {
		body = join(body, words(1), str("also"), str("w/weight"))
	}
	return join(head, body)
}

func parseCTranslate2(b []byte) (*CTranslate2, error) {
	return ReadCTranslate2(bytes.NewReader(b), int64(len(b)))
}

func TestReadCTranslate2(t *testing.T) {
	for version := uint32(2); version <= 6; version++ {
		m, err := parseCTranslate2(sample(version))
		require.NoError(t, err, version)
		assert.Equal(t, WhisperSpec, m.Spec)
		assert.Equal(t, uint32(3), m.Revision)
		require.Len(t, m.Variables, 3)
		assert.Equal(t, I8, m.Variables["w/weight"].Type)
		assert.Equal(t, []int64{2, 3}, m.Variables["w/weight"].Shape)
		assert.Equal(t, int64(8), m.Variables["w/weight_scale"].Size)
		assert.Empty(t, m.Variables["heads"].Shape)
		if version >= 3 {
			v, ok := m.Find("also")
			assert.True(t, ok)
			assert.Equal(t, m.Variables["w/weight"], v)
		}
		spec, ok := CTranslate2Spec(sample(version))
		assert.True(t, ok)
		assert.Equal(t, WhisperSpec, spec)
	}
	for _, head := range []string{"", "lmgg and more", "\x06\x00\x00\x00\x05\x00abc", "\x06\x00\x00\x00\x03\x00a\x01\x00"} {
		_, ok := CTranslate2Spec([]byte(head))
		assert.False(t, ok, head)
	}
}

func TestCTranslate2Errors(t *testing.T) {
	head := func(n uint32) []byte { return join(words(6), str(WhisperSpec), words(3, n)) }
	variable := func(name string, dims []uint32, typ byte, size uint32, data int) []byte {
		return join(str(name), []byte{byte(len(dims))}, words(dims...), []byte{typ}, words(size), make([]byte, data))
	}
	for says, data := range map[string][]byte{
		"expected 4 more bytes":                              []byte("abc"),
		"expected binary version 2 to 6, found 7":            join(words(7), str(WhisperSpec)),
		"expected a name of 1 to 1024":                       join(words(6), []byte{0, 0}),
		"ends with a zero":                                   join(words(6), []byte{2, 0, 'a', 'b'}),
		"at most 65536 variables":                            head(1 << 30),
		"at most 8 dimensions":                               join(head(1), str("a"), []byte{9}),
		"more than the file has":                             join(head(1), variable("a", []uint32{1 << 30, 1 << 30, 1 << 30}, number(F32), 4, 4)),
		"expected a type that CTranslate2 has, found type 9": join(head(1), variable("a", nil, 9, 4, 4)),
		"expected 4 bytes for [] numbers of F32":             join(head(1), variable("a", nil, number(F32), 8, 8)),
		"variable \"a\" is there twice":                      join(head(2), variable("a", nil, number(I8), 1, 1), variable("a", nil, number(I8), 1, 1)),
		"it ends at byte":                                    join(head(1), variable("a", []uint32{4}, number(I8), 4, 3)),
		"at most 65536 aliases":                              join(head(0), words(1<<20)),
		"which is no variable":                               join(head(0), words(1), str("x"), str("y")),
		"found 2 more bytes":                                 join(sample(6), []byte("ab")),
	} {
		_, err := parseCTranslate2(data)
		require.ErrorIs(t, err, ErrInvalid, says)
		assert.ErrorContains(t, err, says)
	}
	old := join(words(3), str(WhisperSpec), words(3, 1), str("a"), []byte{0, 3}, words(1), make([]byte, 3))
	_, err := parseCTranslate2(old)
	require.ErrorContains(t, err, "numbers of 1, 2 or 4 bytes, found 3")
	_, err = ReadCTranslate2(unreadable{}, 1000)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, ErrInvalid)
}

// TestCutCTranslate2 truncates a file at every length.
func TestCutCTranslate2(t *testing.T) {
	whole := sample(6)
	for n := range len(whole) {
		_, err := parseCTranslate2(whole[:n])
		require.ErrorIs(t, err, ErrInvalid, "cut at %d", n)
	}
}

type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func FuzzReadCTranslate2(f *testing.F) {
	for version := uint32(2); version <= 6; version++ {
		f.Add(sample(version))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseCTranslate2(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		for name, v := range m.Variables {
			if v.At < 8 || v.Size < 0 || v.At+v.Size > int64(len(data)) {
				t.Fatalf("variable %q lies outside: %+v", name, v)
			}
		}
	})
}
