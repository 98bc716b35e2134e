package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLanguageTableIsWhispers(t *testing.T) {
	list := Languages()
	require.Len(t, list, 100, "99 languages and Cantonese")
	assert.Equal(t, "yue", list[99].Code, "the hundredth came with large-v3")
	codes, iso3 := map[string]bool{}, map[string]bool{}
	for _, l := range list {
		assert.False(t, codes[l.Code], "code %s twice", l.Code)
		assert.False(t, iso3[l.ISO3], "ISO 639-3 %s twice", l.ISO3)
		codes[l.Code], iso3[l.ISO3] = true, true
		assert.Len(t, l.ISO3, 3)
		assert.Equal(t, l.Name, LanguageName(l.Code))
		for _, s := range append([]string{l.Code, l.ISO3, l.Name, strings.ToUpper(l.Code)}, l.aliases...) {
			got, ok := NormalizeLanguage(s)
			assert.True(t, ok, s)
			assert.Equal(t, l.Code, got, "an alias must not name two languages: %s", s)
		}
	}
}

func TestNormalizeLanguage(t *testing.T) {
	for in, want := range map[string]string{
		"en": "en", "EN": "en", "eng": "en", "English": "en", " de ": "de",
		"pt-BR": "pt", "pt_PT": "pt", "por": "pt", "zh-Hans-CN": "zh", "cmn": "zh", "zh_TW": "zh", "zh-HK": "yue", "zh-Hant-HK": "yue",
		"en-US-x-twain": "en", "sr-Latn": "sr", "iw": "he", "jv": "jw", "jav": "jw", "nb": "no", "nn-NO": "nn", "fil": "tl", "haw": "haw",
		"français": "fr", "Deutsch": "de", "中文": "zh", "Haitian Creole": "ht", "": "", "xx": "", "klingon": "", "english please": "",
		"de--": "", "-en": "", "pt-BRAZILIANS": "", "pt-B$": "", "eng lish": "",
	} {
		got, ok := NormalizeLanguage(in)
		assert.Equal(t, want, got, "%q", in)
		assert.Equal(t, want != "", ok, "%q", in)
	}
}

func TestNearestLanguage(t *testing.T) {
	for in, want := range map[string]string{
		"Portugese": "pt", "germna": "de", "englsh": "en", "spanich-MX": "es", "mandarn": "zh", "qqqqqq": "", "": "",
	} {
		assert.Equal(t, want, nearestLanguage(in), "%q", in)
	}
}

func FuzzNormalizeLanguage(f *testing.F) {
	for _, s := range []string{"en", "zh-Hans-CN", "中文", "a-b-c", "\xff-", "---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		code, ok := NormalizeLanguage(s)
		if !ok {
			require.Empty(t, code)
			return
		}
		again, ok := NormalizeLanguage(code)
		require.True(t, ok)
		require.Equal(t, code, again)
	})
}

func TestSpaced(t *testing.T) {
	assert.True(t, Spaced("en"))
	assert.True(t, Spaced("ko"))
	for _, c := range []string{"zh", "yue", "ja", "th", "lo", "km", "my", "bo"} {
		assert.False(t, Spaced(c), c)
	}
}
