package whisperfolder

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/models"
)

const (
	endOfText = "<|endoftext|>"
	lastTime  = "<|30.00|>"
)

// readTokens returns the texts of the tokens that a ggml file lists: the ones
// before the end of text, and in an English-only model also the end of text. It
// checks that the folder's vocabulary is Whisper's. timed is false if the
// vocabulary has special tokens but none for times.
func readTokens(dir string, h ggmlfile.Header) (tokens [][]byte, timed bool, err error) {
	list, file, err := vocabulary(dir)
	if err != nil {
		return nil, false, err
	}
	end := 50257
	if !h.Multilingual() {
		end = 50256
	}
	first, most := int(h.Vocabulary)-timeTokens, int(h.Vocabulary)
	if last := slices.Index(list, lastTime); last >= 0 {
		most = min(most, last+1)
	}
	switch {
	case len(list) > most:
		return nil, false, fmt.Errorf("%w: %s: expected at most Whisper's %d tokens, found %d: tokens were added, the first is %.40q",
			models.ErrUnsupported, file, most, len(list), list[most])
	case len(list) <= end || list[end] != endOfText:
		return nil, false, fmt.Errorf("%w: %s: expected %s as token %d of a model with %d tokens", models.ErrUnsupported, file, endOfText, end, h.Vocabulary)
	case len(list) > first && list[first] != "<|0.00|>":
		return nil, false, fmt.Errorf("%w: %s: expected the time <|0.00|> as token %d, found %.40q", models.ErrUnsupported, file, first, list[first])
	}
	tokens = make([][]byte, 0, end+1)
	for id, text := range list[:end] {
		raw, err := unspell(text)
		if err != nil {
			return nil, false, fmt.Errorf("%w: %s: token %d: %w", models.ErrBroken, file, id, err)
		}
		tokens = append(tokens, raw)
	}
	if !h.Multilingual() {
		tokens = append(tokens, []byte(endOfText))
	}
	return tokens, len(list) > first || len(list) == end+1, nil
}

// vocabulary reads the tokens, ordered by number, from the folder's first
// vocabulary file in the layout of CTranslate2 or transformers.
func vocabulary(dir string) (list []string, file string, err error) {
	file = filepath.Join(dir, "vocabulary.json")
	if err := readJSON(file, maxVocabulary, &list); !errors.Is(err, models.ErrMissing) {
		return list, file, err
	}
	file = filepath.Join(dir, "vocabulary.txt")
	if data, err := ReadText(file, maxVocabulary); !errors.Is(err, models.ErrMissing) {
		return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), "\n"), file, err
	}
	ids, added, file, err := spelled(dir)
	if err != nil {
		return nil, file, err
	}
	list, err = ordered(ids, added)
	if err != nil {
		return nil, file, fmt.Errorf("%w: %s: %w", models.ErrBroken, file, err)
	}
	return list, file, nil
}

// spelled reads the numbers of the tokens in transformers' layout:
// tokenizer.json or else vocab.json, which may lack special tokens.
func spelled(dir string) (ids, added map[string]int, file string, err error) {
	file = filepath.Join(dir, "tokenizer.json")
	var t tokenizer
	if err := readJSON(file, maxVocabulary, &t); !errors.Is(err, models.ErrMissing) {
		added = map[string]int{}
		for _, a := range t.Added {
			added[a.Content] = a.ID
		}
		return t.Model.Vocabulary, added, file, err
	}
	file = filepath.Join(dir, "vocab.json")
	if err := readJSON(file, maxVocabulary, &ids); errors.Is(err, models.ErrMissing) {
		return nil, nil, "", fmt.Errorf("%w: %s: expected the vocabulary (vocabulary.json, vocabulary.txt, tokenizer.json or vocab.json), found none", models.ErrMissing, dir)
	} else if err != nil {
		return nil, nil, file, err
	}
	if err = readJSON(filepath.Join(dir, "added_tokens.json"), maxVocabulary, &added); errors.Is(err, models.ErrMissing) {
		err = nil
	}
	return ids, added, file, err
}

// tokenizer holds the fields in use of tokenizer.json.
type tokenizer struct {
	Model struct {
		Vocabulary map[string]int `json:"vocab"`
	} `json:"model"`
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
}

// maxToken limits the number of a token, with a margin.
const maxToken = 1 << 18

// ordered returns tokens ordered by number. Missing numbers have an empty text.
func ordered(maps ...map[string]int) ([]string, error) {
	var list []string
	set := map[int]bool{}
	for _, m := range maps {
		for text, id := range m {
			if id < 0 || id > maxToken {
				return nil, fmt.Errorf("token %.40q: expected a number up to %d, found %d", text, maxToken, id)
			}
			for id >= len(list) {
				list = append(list, "")
			}
			if set[id] && list[id] != text {
				return nil, fmt.Errorf("token %d is both %.40q and %.40q", id, min(list[id], text), max(list[id], text))
			}
			list[id], set[id] = text, true
		}
	}
	return list, nil
}

// alphabet maps the characters in GPT-2's spelling of tokens to bytes:
// printable characters stand for themselves, and characters from U+0100 on for
// the other bytes.
var alphabet = func() map[rune]byte {
	m := map[rune]byte{}
	next := rune(0x100)
	for b := range 256 {
		c := rune(b)
		if printable := b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae; !printable {
			c = next
			next++
		}
		m[c] = byte(b)
	}
	return m
}()

// unspell returns the bytes of a token.
func unspell(text string) ([]byte, error) {
	raw := make([]byte, 0, len(text))
	for _, c := range text {
		b, ok := alphabet[c]
		if !ok {
			return nil, fmt.Errorf("expected GPT-2's alphabet of bytes, found %q in %.40q", c, text)
		}
		raw = append(raw, b)
	}
	return raw, nil
}
