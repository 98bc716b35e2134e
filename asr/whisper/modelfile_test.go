package whisper

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/models"
)

func TestCheckAcceptsAModel(t *testing.T) {
	data := testModel()
	f, err := whispernet.OpenFile(modelFile{Data: data}.model())
	require.NoError(t, err)
	assert.Equal(t, testHeader, f.Header)
	assert.True(t, f.Multilingual())
}

// broken returns the model with one word of it replaced.
func broken(at int, v int32) []byte {
	b := bytes.Clone(testModel())
	binary.LittleEndian.PutUint32(b[at:], uint32(v))
	return b
}

func TestCheckRefuses(t *testing.T) {
	good := testModel()
	filters := 4 * 12
	vocabulary := filters + 8 + 4*80*ggmlfile.MelBins
	tensors := vocabulary + 4
	for range 256 {
		tensors += 5
	}
	for _, w := range testWords {
		tensors += 4 + len(w)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":               {nil, "file of 0 bytes"},
		"text":                  {[]byte("version https://git-lfs"), "pointer of Git LFS"},
		"GGUF":                  {[]byte("GGUF\x03\x00\x00\x00"), "which is GGUF"},
		"only the magic number": {good[:4], "header: it ends at byte 4"},
		"half a header":         {good[:30], "header: it ends at byte 30"},
		"small vocabulary":      {broken(4, 5), "tokens (n_vocab) of 51864 to 51866, found 5"},
		"negative vocabulary":   {broken(4, -1), "found -1"},
		"other audio context":   {broken(8, 3000), "expected audio context (n_audio_ctx) 1500, found 3000"},
		"huge width":            {broken(12, 1<<30), "audio width"},
		"no heads":              {broken(16, 0), "audio heads"},
		"heads do not divide":   {broken(16, 5), "that the heads divide evenly"},
		"many layers":           {broken(20, 1<<20), "audio layers"},
		"different widths":      {broken(28, 64), "equal widths"},
		"no mel bands":          {broken(40, 0), "mel bands"},
		"unknown type":          {broken(44, 77), "found 77"},
		"negative type":         {broken(44, -1), "found -1"},
		"filters":               {broken(filters, 81), "mel filters: expected 80 bands of 201 bins, found 81"},
		"huge token list":       {broken(vocabulary, 1<<30), "vocabulary: expected 1 to 51865 tokens"},
		"huge token":            {broken(vocabulary+4, 1<<30), "expected a token of at most 1024 bytes at number 0"},
		"cut in the vocabulary": {good[:vocabulary+100], "mel filters and vocabulary: it ends"},
		"no tensors":            {good[:tensors], "more tensors, the first decoder.blocks.0.attn.key.weight"},
		"cut in a tensor":       {good[:len(good)-1], "it ends at byte"},
		"many dimensions":       {broken(tensors, 5), "expected 1 to 4 dimensions"},
		"huge name":             {broken(tensors+4, 1<<30), "name of 1 to 128 bytes"},
		"unknown tensor type":   {broken(tensors+8, 99), "type 99"},
		"other dimensions":      {broken(tensors+12, 1<<28), "expected dimensions"},
		"other name":            {bytes.Replace(good, []byte("encoder.ln_post.bias"), []byte("encoder.ln_post.bits"), 1), `"encoder.ln_post.bits"`},
		"a tensor twice":        {bytes.Replace(good, []byte("encoder.ln_post.weight"), []byte("decoder.ln.weight\x00\x00\x00\x00\x00"), 1), "has not"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := whispernet.OpenFile(modelFile{Data: append([]byte{}, c.data...)}.model())
			require.ErrorIs(t, err, ErrModel)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestOpenNamesFileAndRole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.bin")
	require.NoError(t, os.WriteFile(path, []byte("something else entirely"), 0o600))
	_, err := openFile(modelFile{Path: path}, Options{})
	require.ErrorIs(t, err, ErrModel)
	for _, part := range []string{path, "standard recognizer", "expected", "found"} {
		assert.ErrorContains(t, err, part)
	}
	_, err = openFile(modelFile{Path: path + ".gone"}, Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = openFile(modelFile{Path: t.TempDir()}, Options{})
	require.ErrorIs(t, err, ErrModel)
	_, err = openFile(modelFile{Data: []byte{}, Model: models.Model{Name: "empty.bin"}}, Options{})
	require.ErrorIs(t, err, ErrModel)
	assert.ErrorContains(t, err, "empty.bin")
}

func FuzzCheck(f *testing.F) {
	good := testModel()
	const head = 4*12 + 8 + 4*80*ggmlfile.MelBins + 4 + 256*5 + 60
	f.Add(good[:48], 0, int32(0))
	f.Add([]byte("lmgg"), 4, int32(-1))
	f.Add([]byte{}, 60000, int32(1<<30))
	// The input replaces the beginning of a valid model and one later word, as
	// in a damaged or hostile file.
	f.Fuzz(func(t *testing.T, begin []byte, at int, word int32) {
		data := bytes.Clone(good[:min(len(good), head+4096)])
		copy(data, begin)
		if at >= 0 && at+4 <= len(data) {
			binary.LittleEndian.PutUint32(data[at:], uint32(word))
		}
		_, err := whispernet.OpenFile(modelFile{Data: data}.model())
		require.ErrorIs(t, err, ErrModel, "the file is cut short, so it can never be right")
	})
}
