package spec

import (
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

// languages is in the order of Whisper's language tokens (numbers 0 to 99 of
// the published vocabulary); the last, yue, came with large-v3.
var languages = []Language{
	{"en", "eng", "english", nil},
	{"zh", "zho", "chinese", []string{"chi", "cmn", "mandarin", "中文", "汉语", "漢語", "普通话", "普通話"}},
	{"de", "deu", "german", []string{"ger", "deutsch"}},
	{"es", "spa", "spanish", []string{"castilian", "español", "espanol", "castellano"}},
	{"ru", "rus", "russian", []string{"русский"}},
	{"ko", "kor", "korean", []string{"한국어"}},
	{"fr", "fra", "french", []string{"fre", "français", "francais"}},
	{"ja", "jpn", "japanese", []string{"日本語"}},
	{"pt", "por", "portuguese", []string{"português", "portugues"}},
	{"tr", "tur", "turkish", []string{"türkçe"}},
	{"pl", "pol", "polish", []string{"polski"}},
	{"ca", "cat", "catalan", []string{"valencian", "català"}},
	{"nl", "nld", "dutch", []string{"dut", "flemish", "nederlands"}},
	{"ar", "ara", "arabic", []string{"arb", "العربية"}},
	{"sv", "swe", "swedish", []string{"svenska"}},
	{"it", "ita", "italian", []string{"italiano"}},
	{"id", "ind", "indonesian", []string{"in", "bahasa indonesia"}},
	{"hi", "hin", "hindi", []string{"हिन्दी"}},
	{"fi", "fin", "finnish", []string{"suomi"}},
	{"vi", "vie", "vietnamese", []string{"tiếng việt"}},
	{"he", "heb", "hebrew", []string{"iw", "עברית"}},
	{"uk", "ukr", "ukrainian", []string{"українська"}},
	{"el", "ell", "greek", []string{"gre", "ελληνικά"}},
	{"ms", "msa", "malay", []string{"may", "zsm", "bahasa melayu"}},
	{"cs", "ces", "czech", []string{"cze", "čeština"}},
	{"ro", "ron", "romanian", []string{"rum", "mo", "mol", "moldavian", "moldovan", "română"}},
	{"da", "dan", "danish", []string{"dansk"}},
	{"hu", "hun", "hungarian", []string{"magyar"}},
	{"ta", "tam", "tamil", []string{"தமிழ்"}},
	{"no", "nor", "norwegian", []string{"nb", "nob", "bokmål", "bokmal", "norsk"}},
	{"th", "tha", "thai", []string{"ไทย"}},
	{"ur", "urd", "urdu", []string{"اردو"}},
	{"hr", "hrv", "croatian", []string{"hrvatski"}},
	{"bg", "bul", "bulgarian", []string{"български"}},
	{"lt", "lit", "lithuanian", []string{"lietuvių"}},
	{"la", "lat", "latin", nil},
	{"mi", "mri", "maori", []string{"mao", "māori"}},
	{"ml", "mal", "malayalam", nil},
	{"cy", "cym", "welsh", []string{"wel", "cymraeg"}},
	{"sk", "slk", "slovak", []string{"slo", "slovenčina"}},
	{"te", "tel", "telugu", nil},
	{"fa", "fas", "persian", []string{"per", "pes", "farsi", "فارسی"}},
	{"lv", "lav", "latvian", []string{"lvs", "latviešu"}},
	{"bn", "ben", "bengali", []string{"bangla", "বাংলা"}},
	{"sr", "srp", "serbian", []string{"српски"}},
	{"az", "aze", "azerbaijani", []string{"azj"}},
	{"sl", "slv", "slovenian", []string{"slovene", "slovenščina"}},
	{"kn", "kan", "kannada", nil},
	{"et", "est", "estonian", []string{"ekk", "eesti"}},
	{"mk", "mkd", "macedonian", []string{"mac", "македонски"}},
	{"br", "bre", "breton", nil},
	{"eu", "eus", "basque", []string{"baq", "euskara"}},
	{"is", "isl", "icelandic", []string{"ice", "íslenska"}},
	{"hy", "hye", "armenian", []string{"arm"}},
	{"ne", "nep", "nepali", []string{"npi"}},
	{"mn", "mon", "mongolian", []string{"khk"}},
	{"bs", "bos", "bosnian", []string{"bosanski"}},
	{"kk", "kaz", "kazakh", nil},
	{"sq", "sqi", "albanian", []string{"alb", "als", "shqip"}},
	{"sw", "swa", "swahili", []string{"swh", "kiswahili"}},
	{"gl", "glg", "galician", []string{"galego"}},
	{"mr", "mar", "marathi", nil},
	{"pa", "pan", "punjabi", []string{"panjabi"}},
	{"si", "sin", "sinhala", []string{"sinhalese"}},
	{"km", "khm", "khmer", nil},
	{"sn", "sna", "shona", nil},
	{"yo", "yor", "yoruba", nil},
	{"so", "som", "somali", nil},
	{"af", "afr", "afrikaans", nil},
	{"oc", "oci", "occitan", nil},
	{"ka", "kat", "georgian", []string{"geo"}},
	{"be", "bel", "belarusian", nil},
	{"tg", "tgk", "tajik", nil},
	{"sd", "snd", "sindhi", nil},
	{"gu", "guj", "gujarati", nil},
	{"am", "amh", "amharic", nil},
	{"yi", "yid", "yiddish", []string{"ji", "ydd"}},
	{"lo", "lao", "lao", nil},
	{"uz", "uzb", "uzbek", []string{"uzn"}},
	{"fo", "fao", "faroese", nil},
	{"ht", "hat", "haitian creole", []string{"haitian"}},
	{"ps", "pus", "pashto", []string{"pushto", "pbt"}},
	{"tk", "tuk", "turkmen", nil},
	{"nn", "nno", "nynorsk", []string{"norwegian nynorsk"}},
	{"mt", "mlt", "maltese", nil},
	{"sa", "san", "sanskrit", nil},
	{"lb", "ltz", "luxembourgish", []string{"letzeburgesch"}},
	{"my", "mya", "myanmar", []string{"bur", "burmese"}},
	{"bo", "bod", "tibetan", []string{"tib"}},
	{"tl", "tgl", "tagalog", []string{"fil", "filipino"}},
	{"mg", "mlg", "malagasy", []string{"plt"}},
	{"as", "asm", "assamese", nil},
	{"tt", "tat", "tatar", nil},
	{"haw", "haw", "hawaiian", nil},
	{"ln", "lin", "lingala", nil},
	{"ha", "hau", "hausa", nil},
	{"ba", "bak", "bashkir", nil},
	{"jw", "jav", "javanese", []string{"jv"}},
	{"su", "sun", "sundanese", nil},
	{"yue", "yue", "cantonese", []string{"zh-yue", "zh-hk", "zh-hant-hk", "粤语", "粵語", "廣東話", "广东话"}},
}

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
	if len(s) == 0 || len(s) > 8 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// NearestLanguage returns the code whose code or name is most similar to s, or
// "" if none is close (more than a third of the letters differ).
func NearestLanguage(s string) string {
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
