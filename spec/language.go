package spec

import (
	_ "embed" // the list of languages
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
)

// Language is one language supported by Whisper models.
type Language struct {
	// Code is Whisper's code: ISO 639-1, except "haw" and "yue", which have no
	// such code, and the older "jw" for Javanese.
	Code string
	// ISO3 is the ISO 639-3 code; if Whisper means a macrolanguage, the
	// macrolanguage's code, like "zho" and "ara".
	ISO3 string
	// Name is the English name, in lower case.
	Name string
	// aliases are further codes (ISO 639-2/B, ISO 639-3 members, retired ones),
	// English names and native names, in lower case.
	aliases []string
}

// languagesCSV is in the order of Whisper's language tokens (numbers 0 to 99 of
// the published vocabulary); the last, yue, came with large-v3.
//
//go:embed languages.csv
var languagesCSV string

// languages are the rows of the list. A wrong row is a build error.
var languages = func() (list []Language) {
	rows, err := csv.NewReader(strings.NewReader(languagesCSV)).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("spec: the embedded list of languages: %v", err))
	}
	for _, r := range rows[1:] {
		list = append(list, Language{Code: r[0], ISO3: r[1], Name: r[2], aliases: strings.FieldsFunc(r[3], func(c rune) bool { return c == '|' })})
	}
	return list
}()

// Languages returns the languages of the published multilingual Whisper models
// in the order of their tokens: 99, with Cantonese as the hundredth.
func Languages() []Language { return slices.Clone(languages) }

// byName maps every code, name and alias to the index in languages.
var byName = func() map[string]int {
	m := make(map[string]int, 6*len(languages))
	for i, l := range languages {
		for _, s := range append([]string{l.Code, l.ISO3, l.Name}, l.aliases...) {
			m[s] = i
		}
	}
	return m
}()

// LanguageName returns the English name of a code that NormalizeLanguage
// returns, in lower case; "" for any other.
func LanguageName(code string) string {
	if i, ok := byName[code]; ok && languages[i].Code == code {
		return languages[i].Name
	}
	return ""
}

// NormalizeLanguage returns Whisper's code for an ISO 639-1, 639-2 or 639-3
// code, an English or a native name, with or without script and region
// ("pt-BR", "zh_Hans_CN", "DEU", "Mandarin"); ok is false for anything else.
// Tags are dropped unless they identify another language ("zh-HK" is "yue").
func NormalizeLanguage(s string) (code string, ok bool) {
	s = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "_", "-"))
	for s != "" {
		if i, found := byName[s]; found {
			return languages[i].Code, true
		}
		cut := strings.LastIndexByte(s, '-')
		if cut < 0 || !isTag(s[cut+1:]) {
			return "", false
		}
		s = s[:cut]
	}
	return "", false
}

// isTag reports whether s has a subtag's form: 1 to 8 letters or digits.
func isTag(s string) bool {
	other := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	return s != "" && len(s) <= 8 && !strings.ContainsFunc(s, other)
}

// nearestLanguage returns the code whose code or name is most similar to s, or
// "" if none is close (more than a third of the letters differ).
func nearestLanguage(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if base, _, found := strings.Cut(strings.ReplaceAll(s, "_", "-"), "-"); found {
		s = base
	}
	best, bestDistance := "", len([]rune(s))/3+1
	for _, l := range languages {
		for _, name := range append([]string{l.Name, l.ISO3}, l.aliases...) {
			if d := editDistance([]rune(s), []rune(name)); d < bestDistance {
				best, bestDistance = l.Code, d
			}
		}
	}
	return best
}

// Spaced reports whether a language is written with spaces between words. The
// others (Chinese, Cantonese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan) are
// timed by the character.
func Spaced(code string) bool {
	switch code {
	case "zh", "yue", "ja", "th", "lo", "km", "my", "bo":
		return false
	}
	return true
}
