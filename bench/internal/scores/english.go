package scores

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// english holds the English rules that differ between versions.
type english struct {
	fillers      []string
	contractions []contraction
	spellings    map[string]string // from British to American
	joins        bool              // compounds and single letters
}

// contraction is a short form at the end of a word or, if whole is set, of a
// whole word.
type contraction struct {
	short, long string
	whole       bool
}

// compound is a word that is also written as several words.
type compound struct {
	parts *regexp.Regexp
	joint string
}

var (
	fewFillers  = []string{"hmm", "mm", "mhm", "mmm", "uh", "um"}
	manyFillers = slices.Concat(fewFillers, []string{"ah", "aha", "ahh", "ahm", "eh", "ehehe", "em", "hm", "huh", "hum", "mhum", "uhm", "umm", "uhuh"})

	whisper     = english{fewFillers, contractions("whisper"), spellings, false}
	openASR2026 = english{manyFillers, contractions("leaderboard"), moreSpellings, true}
)

//go:embed contractions.txt
var contractionList string // lines "word" or "end", short form, long form, name of the only list

// contractions returns the short forms in the order of their replacement, for
// whisper-normalizer ("whisper") or the leaderboard of 2026 ("leaderboard"),
// which lacks some and limits "'s" for "is" to pronouns.
func contractions(list string) (forms []contraction) {
	for line := range strings.Lines(contractionList) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "|"); f[3] == "" || f[3] == list {
			forms = append(forms, contraction{f[1], f[2], f[0] == "word"})
		}
	}
	return forms
}

// compounds lists the words that the leaderboard of 2026 joins.
var compounds = func() (list []compound) {
	for _, c := range []string{
		"et cetera=etc", "al right=alright", "all right=alright", "how ever=however", "wi fi=wifi", "hi fi=hifi", "lo fi=lofi",
		"sci fi=scifi", "e mail=email", "e book=ebook", "e commerce=ecommerce", "x ray=xray", "t shirt=tshirt", "a m=am", "p m=pm", "o k=okay",
	} {
		parts, joint, _ := strings.Cut(c, "=")
		list = append(list, compound{regexp.MustCompile(strings.ReplaceAll(parts, " ", space+"+")), joint})
	}
	return list
}()

//go:embed spellings.txt
var spellingList string // British and American spellings (whisper-normalizer, MIT license)

var (
	spellings = func() map[string]string {
		m := map[string]string{}
		for line := range strings.Lines(spellingList) {
			british, american, _ := strings.Cut(strings.TrimSpace(line), " ")
			m[british] = american
		}
		return m
	}()
	// moreSpellings adds words that the leaderboard of 2026 treats as equal.
	moreSpellings = func() map[string]string {
		m := map[string]string{"ok": "okay", "kay": "okay", "etcetera": "etc"}
		maps.Copy(m, spellings)
		return m
	}()
)

var (
	beforeApostrophe = regexp.MustCompile(space + `+'`)
	commas           = regexp.MustCompile(`(\p{Nd}),(\p{Nd})`)
	stops            = regexp.MustCompile(`\.([^0-9]|$)`)
	loneSigns        = regexp.MustCompile(`[.$¢€£]([^0-9])`)
	lonePercent      = regexp.MustCompile(`([^0-9])%`)
)

func (e english) text(s string) string {
	s = withoutRemarks(lower(s))
	for _, f := range e.fillers {
		s = replaceWord(s, f, "", true)
	}
	s = beforeApostrophe.ReplaceAllLiteralString(s, "'")
	for _, c := range e.contractions {
		s = replaceWord(s, c.short, c.long, c.whole)
	}
	if strings.Contains(s, ",") {
		s = commas.ReplaceAllString(s, "$1$2")
	}
	s = plain(stops.ReplaceAllString(s, " $1"), ".%$¢€£")
	if e.joins {
		for _, c := range compounds {
			s = replaceWords(s, c.parts, true, func([]string) string { return c.joint })
		}
	}
	words := fields(digits(s))
	for i, w := range words {
		if other, ok := e.spellings[w]; ok {
			words[i] = other
		}
	}
	if e.joins {
		words = joinLetters(words)
	}
	s = strings.Join(words, " ")
	if strings.ContainsAny(s, ".$¢€£%") {
		s = lonePercent.ReplaceAllString(loneSigns.ReplaceAllString(s, " $1"), "$1 ")
	}
	return spaces.ReplaceAllLiteralString(s, " ")
}

// joinLetters joins runs of single letters and digits, three with "a" or "i".
func joinLetters(words []string) (out []string) {
	single := func(w string) bool {
		r, n := utf8.DecodeRuneInString(w)
		return n == len(w) && (unicode.IsLetter(r) || unicode.IsNumber(r))
	}
	for i := 0; i < len(words); {
		j := i
		for j < len(words) && single(words[j]) {
			j++
		}
		run, enough := words[i:j], 2
		if slices.Contains(run, "a") || slices.Contains(run, "i") {
			enough = 3
		}
		switch {
		case len(run) == 0:
			out = append(out, words[i])
			j++
		case len(run) >= enough:
			out = append(out, strings.Join(run, ""))
		default:
			out = append(out, run...)
		}
		i = j
	}
	return out
}
