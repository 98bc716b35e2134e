package doors

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// Words returns the words of a segment without spaces around them. Where times
// were not measured, they are interpolated by letters, and the probability is
// the segment's, or 0.
func Words(seg spec.Segment) (list []spec.Word) {
	for _, w := range seg.Words {
		if w.Word = strings.TrimSpace(w.Word); w.Word != "" {
			list = append(list, w)
		}
	}
	if len(list) > 0 {
		return list
	}
	letters, at := 0, 0
	for _, field := range strings.Fields(seg.Text) {
		from := 0
		for i, r := range field {
			if letters++; i > from && spec.Unspaced(r) { // a letter of a script without spaces is a word
				list = append(list, spec.Word{Word: field[from:i]})
				from = i
			}
		}
		list = append(list, spec.Word{Word: field[from:]})
	}
	moment := func() float64 { // rounded to milliseconds
		return math.Round(1000*(seg.Start+(seg.End-seg.Start)*float64(at)/float64(letters))) / 1000
	}
	for i := range list {
		w := &list[i]
		w.Start, w.Interpolated = moment(), true
		at += utf8.RuneCountInString(w.Word)
		if w.End = moment(); seg.Confidence != nil {
			w.Probability = *seg.Confidence
		}
	}
	return list
}

// Plain returns a word in lower case without the punctuation around it, unless
// it is only punctuation.
func Plain(word string) string {
	bare := strings.TrimFunc(word, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
	if bare == "" {
		return word
	}
	return strings.ToLower(bare)
}
