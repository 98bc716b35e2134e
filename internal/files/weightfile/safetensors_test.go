package weightfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// file returns a file with a header and the given number of bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func parse(b []byte) (map[string]Tensor, error) {
	return ReadSafetensors(bytes.NewReader(b), int64(len(b)))
}

const good = `{"b": {"dtype": "F16", "shape": [2, 3], "data_offsets": [4, 16]}, "__metadata__": {"format": "pt"},
	"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "empty": {"dtype": "BF16", "shape": [0, 9], "data_offsets": [4, 4]}}   `

func TestReadSafetensors(t *testing.T) {
	got, err := parse(file(good, 16))
	require.NoError(t, err)
	begin := int64(8 + len(good))
	assert.Equal(t, map[string]Tensor{
		"a": {F32, []int64{}, begin, 4}, "b": {F16, []int64{2, 3}, begin + 4, 12}, "empty": {BF16, []int64{0, 9}, begin + 4, 0},
	}, got)
	assert.True(t, IsSafetensors(file(good, 16)))
	assert.False(t, IsSafetensors([]byte("lmgg and more")))
	assert.False(t, IsSafetensors(nil))
}

func TestErrorsNameDamagedHeaders(t *testing.T) {
	one := func(text string) []byte { return file(`{"a": `+text+`}`, 4) }
	for says, data := range map[string][]byte{
		"found a file of 3 bytes":           []byte("abc"),
		"expected a header of 2":            binary.LittleEndian.AppendUint64(nil, 1<<40),
		"expected a JSON object":            file(`[1, 2]`, 0),
		"unexpected EOF":                    file(`{"a": {"dtype"`, 0),
		"unexpected text after":             file(`{} {}`, 0),
		"__metadata__":                      file(`{"__metadata__": {"a": 1}}`, 0),
		"dtype: expected a type":            one(`{"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}`),
		"expected at most 8 dimensions":     one(`{"dtype": "F32", "shape": [1,1,1,1,1,1,1,1,1], "data_offsets": [0, 4]}`),
		"expected a beginning and an end":   one(`{"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}`),
		"numbers in its 4 bytes":            one(`{"dtype": "F32", "shape": [4611686018427387905, 4], "data_offsets": [0, 4]}`),
		"have room for 1":                   one(`{"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}`),
		`"a" is there twice`:                file(`{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}`, 8),
		"expected its data at 0":            one(`{"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}`),
		"expected its data at 4, after":     file(`{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]}}`, 6),
		"ends at byte 8 of the data":        one(`{"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}`),
		"expected 4 bytes of data, found 5": file(`{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}`, 5),
		"more than 65536 tensors":           file("{"+strings.Repeat(`"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, `, 1)+many()+"}", 0),
	} {
		_, err := parse(data)
		require.ErrorIs(t, err, ErrInvalid, says)
		assert.ErrorContains(t, err, says)
	}
	_, err := ReadSafetensors(failing{}, 1000)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, ErrInvalid)
}

// many returns the descriptions of 65537 tensors without numbers.
func many() string {
	var b strings.Builder
	for i := range maxTensors + 1 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"`)
		for n := i; n > 0; n /= 26 {
			b.WriteByte('a' + byte(n%26))
		}
		b.WriteString(`.":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`)
	}
	return b.String()
}

type failing struct{}

func (failing) ReadAt(p []byte, at int64) (int, error) {
	if at == 0 {
		return copy(p, "\x10\x00\x00\x00\x00\x00\x00\x00"), nil
	}
	return 0, io.ErrClosedPipe
}

func FuzzReadSafetensors(f *testing.F) {
	f.Add(file(good, 16))
	f.Add(file(`{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}`, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := parse(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		for name, v := range tensors {
			if v.At < 8 || v.Size < 0 || v.At+v.Size > int64(len(data)) {
				t.Fatalf("tensor %q lies outside: %+v", name, v)
			}
		}
	})
}
