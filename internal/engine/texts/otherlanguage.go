package texts

import (
	_ "embed" // the words
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

// A text's language is judged by its script, its function words and the
// trigrams of whatlanggo. Trigrams alone are unreliable for a single sentence:
// of held-out English, French and Spanish sentences of 12 letters and more, 1 %
// look like another language. Where one of the two languages has no list of
// function words, trigrams decide alone from leastLetters letters on. Letters
// of a script that the language does not use decide from leastForeign letters
// on; their language is determined from leastNamed letters on.
const (
	leastLetters = 50
	leastNamed   = 12
	leastForeign = 3
)

// UnknownLanguage is the language of a text in a foreign script (ISO 639-2).
const UnknownLanguage = "und"

var shareCharacters = []string{"zh", "yue", "ja"}

// OtherLanguage returns the language (ISO 639-1) of a text that is certainly
// not in the given one, else "". among are the possible ones; empty means all.
func OtherLanguage(text, language string, among []string) string {
	letters := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	own, ok := profiles()[language]
	if !ok || letters < leastForeign {
		return ""
	}
	allowed := map[whatlanggo.Lang]bool{own: true}
	// With one permitted language, it is the answer unless the script differs.
	native := whatlanggo.DetectWithOptions(text, whatlanggo.Options{Whitelist: allowed}).Lang == own
	for _, code := range among {
		if l, ok := profiles()[code]; ok {
			allowed[l] = true
		}
	}
	if len(among) == 0 {
		allowed = nil
	}
	found := whatlanggo.DetectWithOptions(text, whatlanggo.Options{Whitelist: allowed})
	code := found.Lang.Iso6391()
	switch {
	case found.Script == nil, found.Lang == own, slices.Contains(shareCharacters, code) && slices.Contains(shareCharacters, language):
		return ""
	case !native && (!found.IsReliable() || letters < leastNamed):
		return UnknownLanguage
	case native && !certain(text, letters, language, code, found):
		return ""
	}
	return code
}

// certain reports whether a text is in the other language of the same script
// that trigrams detect. Its function words must outnumber three times the
// expected language's, by one if the trigrams are reliable, else by two.
func certain(text string, letters int, language, other string, found whatlanggo.Info) bool {
	if words()[language] == nil || words()[other] == nil {
		return letters >= leastLetters && found.Confidence == 1
	}
	more := count(text, other) - 3*count(text, language)
	return more >= 2 || more == 1 && found.IsReliable()
}

// profiles are whatlanggo's languages by code.
var profiles = sync.OnceValue(func() map[string]whatlanggo.Lang {
	list := map[string]whatlanggo.Lang{"jw": whatlanggo.Jav, "no": whatlanggo.Nob, "yue": whatlanggo.Cmn}
	for l := range whatlanggo.Langs {
		if code := l.Iso6391(); code != "" {
			list[code] = l
		}
	}
	return list
})

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
