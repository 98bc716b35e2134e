package whispernet

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// Vocabulary holds the texts of a model's tokens and the numbers of its special
// tokens. They have the order of OpenAI's models: texts, EOT, SOT, languages,
// translate, transcribe, solm, prev, no speech, no timestamps, time marks.
type Vocabulary struct {
	EOT, SOT, Translate, Transcribe, SOLM, Prev, NoSpeech, NoTimestamps int32
	// Begin is the time mark of 0.00 s; each further token is 0.02 s later.
	Begin int32
	// Size is the number of tokens, including time marks.
	Size      int32
	languages int32
	texts     []string
	ids       map[string]int32
	bytewise  bool // every byte is a token, so that byte pair merging works
}

// newVocabulary numbers the special tokens as whisper.cpp does.
func newVocabulary(texts []string, h ggmlfile.Header) *Vocabulary {
	v := &Vocabulary{EOT: 50256, Size: h.Vocabulary, languages: h.Vocabulary - 51765, texts: texts, ids: make(map[string]int32, len(texts))}
	if h.Multilingual() {
		v.EOT++
		v.languages--
	}
	v.SOT = v.EOT + 1
	v.Translate = v.SOT + 1 + v.languages
	v.Transcribe, v.SOLM, v.Prev, v.NoSpeech, v.NoTimestamps, v.Begin = v.Translate+1, v.Translate+2, v.Translate+3, v.Translate+4, v.Translate+5, v.Translate+6
	for i, t := range texts {
		if int32(i) < v.EOT && t != "" {
			if _, twice := v.ids[t]; !twice {
				v.ids[t] = int32(i)
			}
		}
	}
	v.bytewise = true
	for b := range 256 {
		if _, ok := v.ids[string([]byte{byte(b)})]; !ok {
			v.bytewise = false
		}
	}
	return v
}

// Text returns the bytes of a token below EOT, which need not be whole
// characters; "" for other tokens.
func (v *Vocabulary) Text(token int32) string {
	if token < 0 || token >= v.EOT || int(token) >= len(v.texts) {
		return ""
	}
	return v.texts[token]
}

// Language returns the token of the language with the given index in Whisper's
// table, or -1 if the model has none.
func (v *Vocabulary) Language(index int) int32 {
	if index < 0 || int32(index) >= v.languages {
		return -1
	}
	return v.SOT + 1 + int32(index)
}

// Tokenize splits a text into tokens as in the models' training: into words as
// in GPT-2, then each word by merging neighbors, always the pair whose token
// has the smallest number. A vocabulary that lacks some bytes has no such
// order: its words are split from the left into the longest tokens, and missing
// characters are left out.
func (v *Vocabulary) Tokenize(text string) (tokens []int32) {
	for text != "" {
		n := wordLength(text)
		if v.bytewise {
			tokens = append(tokens, v.merge(text[:n])...)
		} else {
			tokens = append(tokens, v.longest(text[:n])...)
		}
		text = text[n:]
	}
	return tokens
}

// wordLength returns the length of the first match of GPT-2's pattern:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func wordLength(s string) int {
	for _, ending := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(s, ending) {
			return len(ending)
		}
	}
	kinds := []func(rune) bool{
		unicode.IsLetter, unicode.IsNumber,
		func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) },
	}
	body := strings.TrimPrefix(s, " ")
	for _, is := range kinds {
		if n := prefix(body, is); n > 0 {
			return len(s) - len(body) + n
		}
	}
	n := prefix(s, unicode.IsSpace)
	if _, last := utf8.DecodeLastRuneInString(s[:n]); n < len(s) && n > last {
		return n - last // the last space belongs to the next word
	}
	return n
}

// prefix returns the length of s's longest prefix of one kind.
func prefix(s string, is func(rune) bool) int {
	for i, r := range s {
		if !is(r) {
			return i
		}
	}
	return len(s)
}

// merge implements byte pair encoding.
func (v *Vocabulary) merge(word string) (tokens []int32) {
	var parts []string
	for i := range len(word) {
		parts = append(parts, word[i:i+1])
	}
	for {
		best, at := int32(-1), 0
		for i := range len(parts) - 1 {
			if id, ok := v.ids[parts[i]+parts[i+1]]; ok && (best < 0 || id < best) {
				best, at = id, i
			}
		}
		if best < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	for _, p := range parts {
		tokens = append(tokens, v.ids[p])
	}
	return tokens
}

// longest repeatedly takes the longest token from the left.
func (v *Vocabulary) longest(word string) (tokens []int32) {
	for i := 0; i < len(word); {
		n := len(word) - i
		for ; n > 0; n-- {
			if id, ok := v.ids[word[i:i+n]]; ok {
				tokens = append(tokens, id)
				break
			}
		}
		i += max(n, 1)
	}
	return tokens
}
