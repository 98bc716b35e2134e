package onnx

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// writing is the way in which a token's symbol encodes text.
type writing int

const (
	writePieces    writing = iota // sentencepiece: ▁ is a space; characters; byte pieces
	writeByteLevel                // icefall's byte-level BPE: one printable character per byte
	writeContinued                // Paraformer: a piece ending in @@ continues into the next
	writeLetters                  // wav2vec 2.0 and its relatives: | is a space
)

// pieceSpace is sentencepiece's mark for a space.
const pieceSpace = "▁"

const (
	maxTokenFile = 64 << 20
	maxTokens    = 1 << 20
	maxSymbol    = 4096 // bytes
)

// vocabulary is a model's token list.
type vocabulary struct {
	name    string
	symbols []string
	// text holds each token's bytes; nil for blank, unknown and tags.
	text [][]byte
	kind writing
	// blank is the id of the blank, -1 without one.
	blank int
	// spaced reports whether the list marks spaces between words.
	spaced bool
	// upper and lower report which letter cases the list can write.
	upper, lower bool
}

// parseTokens reads a token list: tokens.txt and similar files (SYMBOL ID,
// split at the last space), tokens.json (a list, the index is the id) or
// vocab.json (an object from symbols to ids).
func parseTokens(f sideFile) ([]string, error) {
	fail := func(format string, a ...any) ([]string, error) {
		return nil, fmt.Errorf("%s: %w: %s", f.Name, ErrTokens, fmt.Sprintf(format, a...))
	}
	switch {
	case len(f.Data) == 0:
		return fail("the file is empty or missing; expected lines of SYMBOL ID")
	case len(f.Data) > maxTokenFile:
		return fail("%d bytes, at most %d are accepted", len(f.Data), maxTokenFile)
	}
	var symbols []string
	trimmed := bytes.TrimLeft(f.Data, " \t\r\n\ufeff")
	switch {
	case len(trimmed) > 0 && trimmed[0] == '[' && json.Valid(trimmed):
		if err := json.Unmarshal(trimmed, &symbols); err != nil {
			return fail("expected a JSON list of strings: %v", err)
		}
	case len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed):
		ids := map[string]int{}
		if err := json.Unmarshal(trimmed, &ids); err != nil {
			return fail("expected a JSON object from symbols to ids: %v", err)
		}
		symbols = make([]string, len(ids))
		taken := make([]bool, len(ids))
		for _, s := range slices.Sorted(maps.Keys(ids)) {
			id := ids[s]
			if id < 0 || id >= len(ids) || taken[id] {
				return fail("token %.80q: id %d is taken or outside 0 … %d", s, id, len(ids)-1)
			}
			symbols[id], taken[id] = s, true
		}
	case strings.HasSuffix(f.Name, ".model"):
		return fail("a sentencepiece model is not read: write its pieces as lines of SYMBOL ID")
	default:
		var err error
		if symbols, err = tokenLines(f.Data); err != nil {
			return fail("%v", err)
		}
	}
	if len(symbols) == 0 {
		return fail("it lists no tokens")
	}
	if len(symbols) > maxTokens {
		return fail("%d tokens, at most %d are accepted", len(symbols), maxTokens)
	}
	for i, s := range symbols {
		if len(s) > maxSymbol {
			return fail("token %d has %d bytes, at most %d are accepted", i, len(s), maxSymbol)
		}
	}
	return symbols, nil
}

// tokenLines reads lines of SYMBOL ID. A line that holds only a number is the
// token " ". Ids may come in any order, each once.
func tokenLines(data []byte) ([]string, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	byID := map[int]string{}
	top := -1
	n := 0
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		n++
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		symbol, number := " ", string(line)
		if i := bytes.LastIndexAny(line, " \t"); i >= 0 {
			symbol, number = cmp.Or(string(line[:i]), " "), string(line[i+1:])
		}
		id, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("line %d: expected SYMBOL ID, found %.80q", n, line)
		}
		if id < 0 || id >= maxTokens {
			return nil, fmt.Errorf("line %d: id %d is outside 0 … %d", n, id, maxTokens-1)
		}
		if other, ok := byID[id]; ok {
			return nil, fmt.Errorf("line %d: id %d is both %.80q and %.80q", n, id, other, symbol)
		}
		byID[id] = symbol
		top = max(top, id)
	}
	if top >= 2*len(byID)+16 {
		return nil, fmt.Errorf("highest id is %d in a list of %d tokens", top, len(byID))
	}
	symbols := make([]string, top+1)
	for id, s := range byID {
		symbols[id] = s
	}
	return symbols, nil
}

// newVocabulary determines each token's text. It detects byte-level BPE.
func newVocabulary(name string, symbols []string, kind writing) *vocabulary {
	v := &vocabulary{
		name: name, symbols: symbols, kind: kind, blank: blankOf(name, symbols, kind),
		text: make([][]byte, len(symbols)), spaced: kind == writeContinued,
	}
	if kind == writePieces && byteLevel(symbols) {
		v.kind = writeByteLevel
	}
	bytePieces := 0
	for _, s := range symbols {
		if _, ok := bytePiece(s); ok {
			bytePieces++
		}
	}
	space := pieceSpace
	if kind == writeLetters && !slices.Contains(symbols, " ") {
		space = "|"
	}
	for id, s := range symbols {
		if b, ok := bytePiece(s); ok && bytePieces >= 256 {
			v.text[id] = []byte{b}
			continue
		}
		text := v.textOf(s, space)
		v.text[id] = text
		v.spaced = v.spaced || bytes.IndexByte(text, ' ') >= 0
		for _, r := range string(text) {
			v.upper = v.upper || unicode.IsUpper(r)
			v.lower = v.lower || unicode.IsLower(r)
		}
	}
	return v
}

// blankOf returns the id of the blank, -1 without one.
func blankOf(name string, symbols []string, kind writing) int {
	if kind == writeLetters && !strings.HasSuffix(name, ".json") && symbols[0] == "<s>" {
		return 0 // fairseq's order; transformers' blank is the padding
	}
	return slices.IndexFunc(symbols, func(s string) bool {
		switch s {
		case "<blk>", "<blank>", "<eps>":
			return true
		case "<pad>", "[PAD]":
			return kind == writeLetters
		}
		return false
	})
}

// textOf returns a token's text, nil for none; space marks a space.
func (v *vocabulary) textOf(s, space string) []byte {
	switch {
	case writesNothing(s), v.kind == writeLetters && slices.Contains([]string{"[UNK]", "[PAD]", "[CLS]", "[SEP]"}, s):
		return nil
	case v.kind == writeByteLevel:
		text := []byte{}
		for _, r := range s {
			if r == '▁' {
				text = append(text, ' ')
			} else {
				text = append(text, byteOfChar[r])
			}
		}
		return text
	}
	return []byte(strings.ReplaceAll(s, space, " "))
}

// writesNothing recognizes special tokens: <unk>, <sos/eos>, <|zh|>, SIL …
func writesNothing(s string) bool {
	if s == "" || s == "SIL" {
		return true
	}
	return len(s) > 2 && s[0] == '<' && s[len(s)-1] == '>' && !strings.ContainsAny(s[1:len(s)-1], "<> ")
}

// bytePiece recognizes sentencepiece's byte tokens <0x00> … <0xFF>.
func bytePiece(s string) (byte, bool) {
	if len(s) != 6 || !strings.HasPrefix(s, "<0x") || s[5] != '>' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[3:5], 16, 8)
	return byte(n), err == nil
}

// byteChars lists the printable character of each byte in icefall's byte-level
// BPE: fairseq's table (byte_utils.py), as ranges of code points in order.
var byteChars = [][2]rune{{256, 287}, {32, 126}, {288, 305}, {308, 318}, {321, 328}, {330, 382}, {384, 422}}

var byteOfChar = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for _, r := range byteChars {
		for c := r[0]; c <= r[1]; c++ {
			m[c] = byte(len(m))
		}
	}
	return m
}()

// byteLevel recognizes a byte-level BPE list: it has only ▁ and characters of
// the table, some of them from its upper part (lead byte 0xC6), unlike any
// plain list of a European language.
func byteLevel(symbols []string) bool {
	top := rune(0)
	for _, s := range symbols {
		if writesNothing(s) || strings.HasPrefix(s, "#") {
			continue
		}
		for _, r := range s {
			if r == '▁' {
				continue
			}
			if _, ok := byteOfChar[r]; !ok {
				return false
			}
			top = max(top, r)
		}
	}
	return top >= 0x180
}

// write returns the emissions with their text, without special tokens. A single
// text need not be whole characters.
func (v *vocabulary) write(emissions []emission) []emission {
	if v.kind == writeContinued {
		return v.writeContinued(emissions)
	}
	var out []emission
	for _, e := range emissions {
		if e.text = v.writtenBy(e); e.text == "" {
			continue
		}
		if strings.HasPrefix(e.text, " ") {
			out = dropSpace(out)
			e.text = " " + strings.TrimLeft(e.text, " ")
		}
		out = append(out, e)
	}
	return dropSpace(out)
}

// dropSpace removes trailing spaces if the next token begins with one: a list
// may contain both a token for a space and tokens that begin with one.
func dropSpace(out []emission) []emission {
	if len(out) == 0 {
		return out
	}
	last := &out[len(out)-1]
	if last.text = strings.TrimRight(last.text, " "); last.text == "" {
		return out[:len(out)-1]
	}
	return out
}

// writeContinued joins Paraformer's pieces.
func (v *vocabulary) writeContinued(emissions []emission) (out []emission) {
	last := -1
	for _, e := range emissions {
		if !v.writes(e.id) {
			continue
		}
		e.text = v.piece(e.id)
		if v.spaceBetween(last, e.id) {
			e.text = " " + e.text
		}
		out = append(out, e)
		last = e.id
	}
	return out
}

func (v *vocabulary) writes(id int) bool { return id >= 0 && id < len(v.text) && v.text[id] != nil }

// piece returns a Paraformer token without the mark of an unfinished word.
func (v *vocabulary) piece(id int) string { return strings.TrimSuffix(string(v.text[id]), "@@") }

// spaceBetween reports whether a space separates two tokens that do not contain
// one, as Paraformer's do not. "@@" at the end of a token joins it to the next.
// Words of letters are separated by spaces, Han characters are not. last is -1
// at the beginning of a window.
func (v *vocabulary) spaceBetween(last, id int) bool {
	if v.kind != writeContinued || last < 0 || !v.writes(id) || bytes.HasSuffix(v.text[last], []byte("@@")) {
		return false
	}
	letter := func(r rune) bool { return !spec.Unspaced(r) && solid(r) }
	first, _ := utf8.DecodeRuneInString(v.piece(id))
	before, _ := utf8.DecodeLastRuneInString(v.piece(last))
	return letter(first) || letter(before) && unicode.IsLetter(first)
}

// texts returns each token's text, nil for none, with spaceBetween's space.
func (v *vocabulary) texts() [][]byte {
	out := make([][]byte, len(v.text), len(v.text)+1)
	copy(out, v.text)
	if v.kind == writeContinued {
		for id := range out {
			if v.writes(id) {
				out[id] = []byte(v.piece(id))
			}
		}
	}
	return append(out, []byte{' '})
}

// capitalize capitalizes the text of a model with a single case: lower-cased
// but for the first letter. Text of a model with both cases is unchanged.
func (v *vocabulary) capitalize(s string) string {
	if v.upper == v.lower {
		return s // both cases, or a script without case
	}
	if v.upper {
		s = strings.ToLower(s)
	}
	for i, r := range s {
		if unicode.IsLetter(r) {
			return s[:i] + string(unicode.ToUpper(r)) + s[i+utf8.RuneLen(r):]
		}
	}
	return s
}

// size returns the number of tokens.
func (v *vocabulary) size() int { return len(v.symbols) }

func exp(x float64) float64 { return min(math.Exp(x), 1) }
