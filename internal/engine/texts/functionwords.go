package texts

import (
	_ "embed" // the words
	"strings"
	"sync"
	"unicode"
)

// functionWords has a line for each language: its code, and words that occur in
// most of its sentences and are not common words of the other languages here.
//
//go:embed functionwords.txt
var functionWords string

// words returns the lists as sets, without words that two languages share.
var words = sync.OnceValue(func() map[string]map[string]bool {
	sets, owner := map[string]map[string]bool{}, map[string]string{}
	for line := range strings.Lines(functionWords) {
		fields := strings.Fields(line)
		language := fields[0]
		sets[language] = map[string]bool{}
		for _, w := range fields[1:] {
			if other, shared := owner[w]; shared {
				delete(sets[other], w)
			} else {
				sets[language][w] = true
			}
			owner[w] = language
		}
	}
	return sets
})

// count returns the number of a language's function words in a text.
func count(text, language string) (n int) {
	set := words()[language]
	border := func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }
	for _, w := range strings.FieldsFunc(strings.ToLower(text), border) {
		if set[strings.ReplaceAll(w, "’", "'")] {
			n++
		}
	}
	return n
}
