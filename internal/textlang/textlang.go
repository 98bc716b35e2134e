// Package textlang tells when a text is certainly not in the language that it is
// said to be in, by its script, its function words and the trigrams of whatlanggo.
package textlang

import (
	"slices"
	"sync"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

// Trigrams alone say little about a sentence: of held-out English, French and
// Spanish ones of 12 letters and more, 1 % look like another language. leastLetters
// is the length, in letters, from which they do without function words, where one
// of the two languages has no list; leastForeign is that for a text in a script
// that the language is not written in, and leastNamed that from which such a
// text's language is named.
const (
	leastLetters = 50
	leastNamed   = 12
	leastForeign = 3
)

// Unknown is the language of a text of which only the script tells that it is
// another one (ISO 639-2).
const Unknown = "und"

// chinese are the languages that share the Chinese characters.
var chinese = []string{"zh", "yue", "ja"}

// Other returns the language (ISO 639-1) of a text that is certainly not in the
// given one, and "" for a text that may be. among are the languages that it can
// be in, none for all.
func Other(text, language string, among []string) string {
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
	// With one language allowed, it is found unless the script is another.
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
	case found.Script == nil, found.Lang == own, slices.Contains(chinese, code) && slices.Contains(chinese, language):
		return ""
	case !native && (!found.IsReliable() || letters < leastNamed):
		return Unknown
	case native && !certain(text, letters, language, code, found):
		return ""
	}
	return code
}

// certain reports whether a text that trigrams take for another language of the
// same script is in that language. Its function words must outnumber three times
// those of the language expected, by one where the trigrams are sure, else by two.
func certain(text string, letters int, language, other string, found whatlanggo.Info) bool {
	if words()[language] == nil || words()[other] == nil {
		return letters >= leastLetters && found.Confidence == 1
	}
	more := count(text, other) - 3*count(text, language)
	return more >= 2 || more == 1 && found.IsReliable()
}

// profiles are whatlanggo's languages by their codes.
var profiles = sync.OnceValue(func() map[string]whatlanggo.Lang {
	list := map[string]whatlanggo.Lang{"jw": whatlanggo.Jav, "no": whatlanggo.Nob, "yue": whatlanggo.Cmn}
	for l := range whatlanggo.Langs {
		if code := l.Iso6391(); code != "" {
			list[code] = l
		}
	}
	return list
})
