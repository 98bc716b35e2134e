package jsonstream

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func texts(r io.Reader) (list []string, err error) {
	list = []string{}
	err = ReadTexts(r, func(r io.Reader) error {
		data, err := io.ReadAll(r)
		list = append(list, string(data))
		return err
	})
	return list, err
}

// TestReadTexts: any list of ASCII texts is the same after reading, whatever its
// escapes, its white space and the pieces in which it arrives.
func TestReadTexts(t *testing.T) {
	text := rapid.StringOf(rapid.RuneFrom([]rune(`ab+/=,;:"\[]<>& `)))
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(text, 0, 5).Draw(t, "texts")
		written, err := json.MarshalIndent(want, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent"))
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "escaped") {
			written = []byte(strings.NewReplacer("+", `\u002B`, "/", `\/`).Replace(string(written)))
		}
		r := io.Reader(strings.NewReader(" " + string(written) + "\n"))
		if rapid.Bool().Draw(t, "byte by byte") {
			r = iotest.OneByteReader(r)
		}
		got, err := texts(r)
		require.NoError(t, err, "%s", written)
		require.Equal(t, want, got)
	})
	for _, bad := range []string{`{"a":"b"}`, `["a" "b"]`, `["a",]`, `[1]`, `[null]`, `["a"] ["b"]`, `[,"a"]`, `["\u00zz"]`} {
		_, err := texts(strings.NewReader(bad))
		require.ErrorAs(t, err, new(*Error), bad)
	}
	for _, cut := range []string{``, `[`, `["a`, `["a"`, `["a",`, `["\`} {
		_, err := texts(strings.NewReader(cut))
		require.ErrorAs(t, err, new(*ReadError), cut)
	}
	list, err := texts(strings.NewReader(`["\u00e9"]`))
	require.NoError(t, err)
	assert.Equal(t, []string{"\x80"}, list)
}
