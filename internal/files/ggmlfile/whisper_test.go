package ggmlfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample writes a small but complete file: 80 bands by 5 bins, 3 tokens, an f32
// tensor, an f16 one and a q8_0 one. Index i of params is the i-th hyper
// parameter.
func sample(change func(params []int32)) []byte {
	params := []int32{51865, 1500, 64, 2, 1, 320, 64, 2, 1, 80, 7}
	if change != nil {
		change(params)
	}
	var b bytes.Buffer
	put := func(v ...int32) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(Magic)
	put(params...)
	put(80, 5)
	b.Write(make([]byte, 80*5*4))
	put(3)
	for _, token := range []string{"a", "bc", ""} {
		put(int32(len(token)))
		b.WriteString(token)
	}
	tensor := func(kind int32, bytes int, dims ...int32) {
		put(int32(len(dims)), 4, kind)
		put(dims...)
		b.WriteString("name")
		b.Write(make([]byte, bytes))
	}
	tensor(0, 7*4, 7)
	tensor(1, 3*5*2, 3, 5)
	tensor(8, 64*2/32*34, 64, 2)
	return b.Bytes()
}

// parse checks a model in memory.
func parse(data []byte) (*Checked, error) {
	return Check(bytes.NewReader(data), int64(len(data)), false)
}

func TestCheckReadsTheHeaderAndTensors(t *testing.T) {
	h, err := parse(sample(nil))
	require.NoError(t, err)
	assert.Equal(t, &Checked{
		Header: Header{
			Vocabulary: 51865, AudioContext: 1500, AudioState: 64, AudioHeads: 2, AudioLayers: 1, TextContext: 320, TextState: 64,
			TextHeads: 2, TextLayers: 1, Mels: 80, Type: 7,
		},
		ReaderAt: bytes.NewReader(sample(nil)),
		Filters:  4 + 11*4 + 2*4, FilterBins: 5, Texts: []string{"a", "bc", ""},
		Index: []Tensor{
			{Name: "name", Kind: 0, Dims: []int32{7}, Offset: 1695, Size: 28},
			{Name: "name", Kind: 1, Dims: []int32{3, 5}, Offset: 1747, Size: 30},
			{Name: "name", Kind: 8, Dims: []int32{64, 2}, Offset: 1801, Size: 136},
		},
	}, h)
	assert.True(t, h.Multilingual())
	h, err = parse(sample(func(p []int32) { p[0] = 51864 }))
	require.NoError(t, err)
	assert.False(t, h.Multilingual())
}

func TestEveryCutIsRefused(t *testing.T) {
	whole := sample(nil)
	refused := 0
	for n := range len(whole) {
		if _, err := parse(whole[:n]); err != nil {
			require.ErrorIs(t, err, ErrNotWhisper, "cut at %d", n)
			refused++
		}
	}
	// A file cut exactly after its first or second tensor is well-formed; the
	// loader reports the missing tensors by name.
	assert.Equal(t, len(whole)-2, refused)
}

func TestErrorsNameBadNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		index int
		value int32
		says  string
	}{
		"no vocabulary":   {0, 0, "n_vocab"},
		"huge vocabulary": {0, 1 << 30, "n_vocab"},
		"negative ctx":    {1, -5, "n_audio_ctx"},
		"huge state":      {2, 1 << 20, "n_audio_state"},
		"no heads":        {3, 0, "n_audio_head"},
		"odd heads":       {3, 3, "divide evenly"},
		"layers":          {8, 1 << 12, "n_text_layer"},
		"bands":           {9, 128, "mel filters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(sample(func(p []int32) { p[c.index] = c.value }))
			require.ErrorIs(t, err, ErrNotWhisper)
			assert.ErrorContains(t, err, c.says)
		})
	}
	tokens := sample(nil)
	binary.LittleEndian.PutUint32(tokens[4+11*4+8+80*5*4:], 51866)
	_, err := parse(tokens)
	require.ErrorIs(t, err, ErrNotWhisper)
	assert.ErrorContains(t, err, "n_vocab is 51865")
	_, err = parse([]byte("GGUF and so on, and so on"))
	require.ErrorIs(t, err, ErrNotWhisper)
	assert.ErrorContains(t, err, "0x67676d6c")
	_, err = parse(append(sample(nil), 0))
	require.ErrorIs(t, err, ErrNotWhisper, "data after the last tensor")
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func TestReadErrorsAreNotErrNotWhisper(t *testing.T) {
	_, err := Check(failing{}, 1000, false)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	assert.NotErrorIs(t, err, ErrNotWhisper)
}

func FuzzCheck(f *testing.F) {
	f.Add(sample(nil))
	f.Add(sample(func(p []int32) { p[0] = 51864 }))
	f.Add([]byte("lmgg"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parse(data); err != nil && !errors.Is(err, ErrNotWhisper) {
			t.Fatalf("another error: %v", err)
		}
	})
}

// TestTranslates uses the shapes of published models.
func TestTranslates(t *testing.T) {
	for name, c := range map[string]struct {
		vocabulary, encoder, decoder int32
		want                         bool
	}{
		"base": {51865, 6, 6, true}, "base.en": {51864, 6, 6, false}, "large-v3": {51866, 32, 32, true},
		"large-v3-turbo": {51866, 32, 4, false}, "distil-large-v2": {51865, 32, 2, false},
	} {
		w := Header{Vocabulary: c.vocabulary, AudioLayers: c.encoder, TextLayers: c.decoder}
		assert.Equal(t, c.want, w.Translates(), name)
	}
}
