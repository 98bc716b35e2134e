package onnx

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
)

func TestTokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"plain":              {"<blk> 0\na 1\nb 2\n", []string{"<blk>", "a", "b"}},
		"any order":          {"b 2\n<blk> 0\na 1", []string{"<blk>", "a", "b"}},
		"windows line ends":  {"<blk> 0\r\na 1\r\n", []string{"<blk>", "a"}},
		"byte order mark":    {"\ufeff<blk> 0\na 1\n", []string{"<blk>", "a"}},
		"lone number":        {"<blk> 0\n1\nb 2\n", []string{"<blk>", " ", "b"}},
		"space and number":   {"<blk> 0\n 1\nb 2\n", []string{"<blk>", " ", "b"}},
		"symbol with spaces": {"<blk> 0\na b 1\n", []string{"<blk>", "a b"}},
		"tabs":               {"<blk>\t0\na\t1\n", []string{"<blk>", "a"}},
		"odd symbols":        {"<blk> 0\n▁ 1\n\u00a0 2\n0 3\n", []string{"<blk>", "▁", "\u00a0", "0"}},
		"symbol twice":       {"<blk> 0\na 1\na 2\n", []string{"<blk>", "a", "a"}},
		"json":               {` ["<blank>", "你", "he@@"]`, []string{"<blank>", "你", "he@@"}},
		"bracket first":      {"[ 0\n] 1\n", []string{"[", "]"}},
		"a gap":              {"<blk> 0\nb 2\n", []string{"<blk>", "", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTokens(sideFile{Name: "tokens.txt", Data: []byte(c.file)})
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestInvalidTokenFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"empty":       {"", "empty or missing"},
		"blank lines": {"\n\n", "no tokens"},
		"no number":   {"<blk> 0\nhello\n", "line 2: expected SYMBOL ID, found \"hello\""},
		"negative":    {"<blk> -1\n", "line 1: id -1"},
		"huge":        {"<blk> 99999999\n", "line 1: id 99999999"},
		"sparse":      {"<blk> 0\na 500\n", "highest id is 500 in a list of 2 tokens"},
		"twice":       {"<blk> 0\na 1\nb 1\n", `line 3: id 1 is both "a" and "b"`},
		"json object": {`[1, 2]`, "JSON list of strings"},
		"long symbol": {strings.Repeat("x", 5000) + " 0\n", "5000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTokens(sideFile{Name: "vocab.txt", Data: []byte(c.file)})
			require.ErrorIs(t, err, ErrTokens)
			assert.ErrorContains(t, err, "vocab.txt")
			assert.ErrorContains(t, err, c.want)
		})
	}
	_, err := parseTokens(sideFile{Name: "bpe.model", Data: []byte{0x0a, 0x7f, 1}})
	require.ErrorIs(t, err, ErrTokens)
	assert.ErrorContains(t, err, "lines of SYMBOL ID")
}

// joined returns the text of consecutive ids.
func joined(v *vocabulary, ids ...int) string {
	var e []emission
	for _, id := range ids {
		e = append(e, emission{id: id})
	}
	var b strings.Builder
	for _, m := range v.write(e) {
		b.WriteString(m.text)
	}
	return strings.TrimPrefix(b.String(), " ")
}

func TestTokensBecomeText(t *testing.T) {
	make := func(kind writing, symbols ...string) *vocabulary {
		v := newVocabulary("tokens.txt", symbols, kind)
		return v
	}
	t.Run("word pieces", func(t *testing.T) {
		v := make(writePieces, "<blk>", "▁Hel", "lo", "▁", "world", "<unk>", "</s>", "SIL", "<|en|>", "<", "a>")
		assert.Equal(t, "Hello world", joined(v, 0, 1, 2, 5, 3, 4, 6, 7, 8))
		assert.Equal(t, "Hello world", joined(v, 3, 1, 2, 3, 3, 4), "a separate space token is not doubled")
		assert.Equal(t, "Hello Hel", joined(v, 1, 2, 3, 1), "no space before a piece that begins with one")
		assert.Equal(t, "Hello", joined(v, 1, 2, 3), "no space at the end, before the next window")
		assert.Equal(t, "<a>", joined(v, 9, 10), "empty brackets are text")
		assert.True(t, v.spaced)
		assert.Equal(t, 0, v.blank)
	})
	t.Run("Chinese characters", func(t *testing.T) {
		v := make(writePieces, "<blank>", "你", "好")
		assert.Equal(t, "你好", joined(v, 1, 2))
		assert.False(t, v.spaced)
		assert.Equal(t, "你好", v.capitalize("你好"))
	})
	t.Run("byte pieces", func(t *testing.T) {
		symbols := []string{"<blk>"}
		for i := range 256 {
			symbols = append(symbols, fmt.Sprintf("<0x%02X>", i))
		}
		v := make(writePieces, append(symbols, "▁ok")...)
		assert.Equal(t, "é ok", joined(v, 1+0xc3, 1+0xa9, 257))
		few := make(writePieces, "<blk>", "<0x41>")
		assert.Equal(t, "", joined(few, 1), "without all 256 bytes it is an ordinary special token")
	})
	t.Run("byte-level", func(t *testing.T) {
		chars := map[byte]string{}
		for r, b := range byteOfChar {
			chars[b] = string(r)
		}
		require.Len(t, chars, 256)
		var ni string
		for _, b := range []byte("你") {
			ni += chars[b]
		}
		symbols := []string{"<blk>", "<sos/eos>", "<unk>", "▁" + ni, "h", "i", chars[0xff]}
		v := make(writePieces, symbols...)
		assert.Equal(t, writeByteLevel, v.kind)
		assert.Equal(t, "你 你hi", joined(v, 3, 3, 4, 5))
		assert.Equal(t, writePieces, make(writePieces, "<blk>", "▁é", "œ", "ß", "ž").kind, "a European list is not byte-level")
	})
	t.Run("pieces that continue a word", func(t *testing.T) {
		v := make(writeContinued, paraformerTokens...)
		assert.Equal(t, "hello go 你好 go", joined(v, 5, 6, 7, 3, 4, 7))
	})
	t.Run("capital letters", func(t *testing.T) {
		assert.Equal(t, "Ésta es", make(writePieces, "<blk>", "a").capitalize("ésta es"))
		assert.Equal(t, "«Hello", make(writePieces, "<blk>", "A").capitalize("«HELLO"))
		assert.Equal(t, "iPhone", make(writePieces, "<blk>", "A", "a").capitalize("iPhone"))
		assert.Equal(t, "", make(writePieces, "<blk>", "a").capitalize(""))
	})
}

func TestNoSpacesBetweenHanCharacters(t *testing.T) {
	for in, want := range map[string]string{
		"你 好": "你好", "你 好 吗": "你好吗", "你 hello 好": "你 hello 好", "a b": "a b", "你好。 再见": "你好。 再见", "": "", " 你 ": " 你 ",
	} {
		assert.Equal(t, want, closeUp(in))
	}
}

// FuzzMetadata checks that a model's own table of strings is treated as
// untrusted input.
func FuzzMetadata(f *testing.F) {
	f.Add("model_type", "wenet_ctc")
	f.Add("subsampling_factor", "4")
	f.Add("neg_mean", "1,2,3")
	f.Add("normalize_type", "per_feature")
	f.Fuzz(func(t *testing.T, key, value string) {
		g := &ort.Graph{Header: onnxfile.Header{Metadata: map[string]string{key: value}, Inputs: []ort.Info{{Name: "x", Type: ort.Float32}}}}
		src := ort.Source{Name: "made-up.onnx", Role: "optimized"}
		read := func() *checker { return &checker{Graph: g, source: src} }
		c := read()
		n := c.number(key, 5, 1, 64)
		assert.True(t, n >= 1 && n <= 64)
		assert.True(t, c.err == nil || errors.Is(c.err, ErrContract))
		c = read()
		if v := c.numbers(key, 3); c.err != nil {
			assert.ErrorIs(t, c.err, ErrContract)
		} else if v != nil {
			assert.Len(t, v, 3)
		}
		if _, err := ort.ContractOf(g, models.RoleOptimized, ""); err != nil {
			assert.ErrorIs(t, err, ErrContract)
		}
		c = read()
		openNeMoFront(parts{ONNX: src}, c)
		assert.ErrorIs(t, c.err, ErrContract, "no such input")
	})
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte(sampleTokens), "tokens.txt")
	f.Add([]byte("1\n 2\na b 3\r\n"), "vocab.txt")
	f.Add([]byte(`["a","b"]`), "tokens.json")
	f.Add([]byte(`{"<pad>": 0, "|": 1}`), "vocab.json")
	f.Add([]byte("ƍƍ 0\n▁Ǝ 1\n"), "tokens.txt")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		symbols, err := parseTokens(sideFile{Name: name, Data: data})
		if err != nil {
			assert.ErrorIs(t, err, ErrTokens)
			return
		}
		assert.NotEmpty(t, symbols)
		for _, kind := range []writing{writePieces, writeContinued} {
			v := newVocabulary(name, symbols, kind)
			var all []emission
			for id := range symbols {
				all = append(all, emission{id: id})
			}
			for _, m := range v.write(all) {
				_ = v.capitalize(m.text)
			}
			// A hotword spelled like the list's own symbols must not break the
			// tree.
			if b := newBooster(symbols[:min(len(symbols), 20)], v.texts(), v.spaced); b != nil {
				p := place{node: b.start}
				for id := range symbols {
					p = b.step(p, id, false)
					assert.GreaterOrEqual(t, b.score(p)+1e-9, b.finish(p))
				}
			}
		}
	})
}

func FuzzMVN(f *testing.F) {
	f.Add([]byte("<LearnRateCoef> 0 [ 1 2 ]\n<LearnRateCoef> 0 [ 3 4 ]"))
	f.Add([]byte("<LearnRateCoef> 0 [ 1 x ]"))
	f.Add([]byte("<LearnRateCoef>["))
	f.Fuzz(func(t *testing.T, data []byte) {
		shift, scale, err := parseMVN(data, 2)
		if err != nil {
			return
		}
		assert.Len(t, shift, 2)
		assert.Len(t, scale, 2)
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"features_size":128,"subsampling_factor":8}`))
	f.Add([]byte(`{"features_size":-1}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := &checker{Graph: &ort.Graph{}}
		c := g.config(sideFile{Name: "config.json", Data: data})
		if g.err != nil {
			assert.ErrorIs(t, g.err, ErrFile)
			return
		}
		assert.GreaterOrEqual(t, c.Features, 0)
		assert.GreaterOrEqual(t, c.Subsampling, 0)
		_ = utf8.ValidString(c.ModelType)
	})
}
