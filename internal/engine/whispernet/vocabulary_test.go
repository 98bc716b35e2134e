package whispernet

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// TestSpecialTokens compares the numbers with OpenAI's tokenizers.
func TestSpecialTokens(t *testing.T) {
	for size, want := range map[int32]Vocabulary{
		51864: {EOT: 50256, SOT: 50257, Translate: 50357, Transcribe: 50358, SOLM: 50359, Prev: 50360, NoSpeech: 50361, NoTimestamps: 50362, Begin: 50363},
		51865: {EOT: 50257, SOT: 50258, Translate: 50358, Transcribe: 50359, SOLM: 50360, Prev: 50361, NoSpeech: 50362, NoTimestamps: 50363, Begin: 50364},
		51866: {EOT: 50257, SOT: 50258, Translate: 50359, Transcribe: 50360, SOLM: 50361, Prev: 50362, NoSpeech: 50363, NoTimestamps: 50364, Begin: 50365},
	} {
		v := newVocabulary(nil, ggmlfile.Header{Vocabulary: size})
		want.Size, want.languages, want.ids = size, v.languages, v.ids
		assert.Equal(t, want, *v)
		assert.Equal(t, v.SOT+1, v.Language(0))
		assert.Equal(t, v.Translate-1, v.Language(int(v.languages)-1))
		assert.EqualValues(t, -1, v.Language(int(v.languages)))
	}
}

// TestWordsAreSplitAsInGPT2 checks GPT-2's word splitting.
func TestWordsAreSplitAsInGPT2(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello world":         {"Hello", " world"},
		"it's 1,000 of them!": {"it", "'s", " 1", ",", "000", " of", " them", "!"},
		"a  b \n":             {"a", " ", " b", " \n"},
		"Grüße, 東京 2020年":     {"Grüße", ",", " 東京", " 2020", "年"},
		" (x)":                {" (", "x", ")"},
		"\n\nend":             {"\n", "\n", "end"},
		"we'd've":             {"we", "'d", "'ve"},
	} {
		var got []string
		for rest := text; rest != ""; {
			n := wordLength(rest)
			got, rest = append(got, rest[:n]), rest[n:]
		}
		assert.Equal(t, want, got, "%q", text)
	}
}

// TestTokenize checks merges: in "abcd" the pair with the smallest number comes
// first, although "abc" is longer.
func TestTokenize(t *testing.T) {
	var texts []string
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	texts = append(texts, "cd", "ab", "abc", "abcd", " a")
	v := newVocabulary(texts, ggmlfile.Header{Vocabulary: 51865})
	assert.Equal(t, []int32{259}, v.Tokenize("abcd")) // ab + cd
	assert.Equal(t, []int32{258}, v.Tokenize("abc"))
	assert.Equal(t, []int32{257, 260, 'x'}, v.Tokenize("ab ax"))
	assert.Equal(t, []int32{0xc3, 0xa4}, v.Tokenize("ä"))
	assert.Equal(t, "cd", v.Text(256))
	assert.Empty(t, v.Text(v.EOT))
	assert.Empty(t, v.Text(-1))

	sparse := newVocabulary([]string{"a", "ab", "b"}, ggmlfile.Header{Vocabulary: 51865})
	assert.Equal(t, []int32{1, 0, 2}, slices.Concat(sparse.Tokenize("ab"), sparse.Tokenize("axb")))
}

func FuzzTokenize(f *testing.F) {
	var texts []string
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	v := newVocabulary(append(texts, " t", "th", "the", " the"), ggmlfile.Header{Vocabulary: 51865})
	f.Add("the  \u00a0 \xff\n 's")
	f.Fuzz(func(t *testing.T, text string) {
		var back string
		for _, token := range v.Tokenize(text) {
			back += v.Text(token)
		}
		assert.Equal(t, text, back)
	})
}

func TestTop(t *testing.T) {
	x := []float32{1, 5, 3, 5, 2}
	assert.Equal(t, []Candidate{{1, 5}, {3, 5}, {2, 3}}, Top(x, 3, nil))
	assert.Equal(t, []Candidate{{1, 5}, {3, 5}, {2, 3}, {4, 2}, {0, 1}}, Top(x, 9, make([]Candidate, 2)))
}
