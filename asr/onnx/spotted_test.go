package onnx

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/engine/ctc"
)

// TestSpottedHotwordReplacesWords checks that a hotword replaces the words in
// its rows, and that punctuation and the words around it stay.
func TestSpottedHotwordReplacesWords(t *testing.T) {
	v := newVocabulary("tokens.txt", []string{"<blk>", "▁I", "▁saw", "▁bore", "▁his", "s", ",", "▁", "▁today", ".", "我", "们"}, writePieces)
	h := head{vocab: v, blank: 0, shift: 0.04}
	at := func(ids ...int) (out []emission) { // one token in every fourth row
		for i, id := range ids {
			out = append(out, emission{id: id, start: float64(4*i) * h.shift, end: float64(4*i+1) * h.shift})
		}
		return out
	}
	for _, c := range []struct {
		name        string
		decoded     []emission
		first, last int
		want        string
	}{
		{"two words", at(1, 2, 3, 4, 8, 9), 8, 12, " I saw Boris today."},
		{"a word of two tokens, and a comma", at(1, 2, 3, 5, 6, 8, 9), 8, 13, " I saw Boris, today."},
		{"most of a word", at(1, 2, 3, 5, 5, 8, 9), 10, 16, " I saw Boris today."},
		{"between words", at(1, 2, 8, 9), 5, 7, " I saw Boris today."},
		{"at the start", at(1, 2, 8, 9), 0, 1, " Boris saw today."},
		{"at the end", at(1, 2, 3, 4, 9), 8, 13, " I saw Boris."},
		{"nothing decoded", nil, 3, 9, " Boris"},
		{"in a long word, but short", at(1, 3, 5, 5, 5, 5, 8), 5, 8, " I Boris today"},
		{"across two long words", at(3, 5, 5, 5, 5, 5, 4, 5, 5, 5, 5, 5), 18, 27, " boresssss hissssss"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := ""
			for _, m := range v.write(h.put(c.decoded, []ctc.Spotted{{Text: "Boris", First: c.first, Last: c.last}})) {
				text += m.text
			}
			assert.Equal(t, c.want, text)
		})
	}
	same := at(1, 2, 3, 4, 8)
	assert.Equal(t, same, h.put(same, []ctc.Spotted{{Text: "Bore his", First: 8, Last: 12}}), "decoded unchanged")
	assert.Equal(t, same, h.put(same, nil))
	two := h.put(at(1, 2, 3, 4, 8, 9), []ctc.Spotted{{Text: "Anna", First: 4, Last: 5}, {Text: "Boris", First: 8, Last: 12}})
	text := ""
	for _, m := range v.write(two) {
		text += m.text
	}
	assert.Equal(t, " I Anna Boris today.", text)
}
