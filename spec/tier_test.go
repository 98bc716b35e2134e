package spec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every relevant language × optimize × optimize_zh × loaded models, compared
// with the specification's table written as a rule.
func TestRoute(t *testing.T) {
	loads := map[string][]string{
		"no optimized model": nil,
		"one for en":         {"en"},
		"one for all":        OptimizedLanguages(),
		"one for zh and es":  {"zh", "es"},
		"one for more":       {"zh", "es", "de", "yue"},
	}
	bools := []*bool{nil, new(true), new(false)}
	show := func(b *bool) string {
		if b == nil {
			return "null"
		}
		return fmt.Sprint(*b)
	}
	for _, language := range []string{"zh", "en", "es", "fr", "pt", "de", "ja", "ko", "yue", "ru"} {
		for what, loaded := range loads {
			for _, optimize := range bools {
				want := TierStandard
				if slices.Contains(loaded, language) && show(optimize) != "false" {
					want = TierOptimized
				}
				got := Route(language, Options{Optimize: optimize}, Available{Standard: true, Optimized: loaded})
				assert.Equal(t, want, got, "%s, optimize=%s, %s", language, show(optimize), what)
			}
			for _, zh := range bools[1:] { // the earlier variant
				want := TierStandard
				if language == "zh" && slices.Contains(loaded, "zh") && *zh {
					want = TierOptimized
				}
				got := Route(language, Options{OptimizeZh: zh}, Available{Standard: true, Optimized: loaded})
				assert.Equal(t, want, got, "%s, optimize_zh=%s, %s", language, show(zh), what)
			}
		}
	}
}

// TestTiers checks the tiers that may run for options with one set of models.
func TestTiers(t *testing.T) {
	both := []Tier{TierStandard, TierOptimized}
	standard, optimized := both[:1], both[1:]
	none := []Tier(nil)
	whisper := Available{Standard: true}
	all := Available{Standard: true, Optimized: OptimizedLanguages()}
	english := Available{Standard: true, StandardLanguages: []string{"en"}, Optimized: []string{"en"}}
	fast := Available{Optimized: []string{"en", "es"}}
	for _, tt := range []struct {
		name    string
		options Options
		set     Available
		want    []Tier
	}{
		{"no transcription", Options{EnableASR: new(false)}, all, none},
		{"detected, standard alone", Options{}, whisper, standard},
		{"detected, both", Options{}, all, both},
		{"detected, English alone in both tiers", Options{}, english, optimized},
		{"standard asked for", Options{Optimize: new(false)}, all, standard},
		{"standard requested, not installed", Options{Optimize: new(false)}, fast, none},
		{"optimized requested, not installed", Options{Optimize: new(true)}, whisper, standard},
		{"given, both", Options{ASRLanguage: new("en")}, all, optimized},
		{"given by a name and a region", Options{ASRLanguage: new("English-US")}, all, optimized},
		{"given, standard alone", Options{ASRLanguage: new("en")}, whisper, standard},
		{"given, not applicable", Options{ASRLanguage: new("de")}, all, standard},
		{"given, not known", Options{ASRLanguage: new("de")}, english, none},
		{"given, no standard model", Options{ASRLanguage: new("de")}, fast, none},
		{"not a language", Options{ASRLanguage: new("qqq")}, all, none},
		{"earlier variant, Chinese", Options{OptimizeZh: new(true), ASRLanguage: new("zh")}, all, optimized},
		{"earlier variant, English", Options{OptimizeZh: new(true), ASRLanguage: new("en")}, all, standard},
		{"earlier variant, off", Options{OptimizeZh: new(false)}, all, standard},
		{"earlier variant, detected", Options{OptimizeZh: new(true)}, all, both},
		{"nothing installed", Options{}, Available{}, none},
	} {
		assert.Equal(t, tt.want, PossibleTiers(tt.options, []Available{tt.set}), tt.name)
	}
	assert.Equal(t, []string{"en", "es"}, fast.Languages(Options{}))
	assert.Len(t, whisper.Languages(Options{}), len(Languages()))
}

// TestPossibleTiers checks the tiers of several sets together, and that every
// tier is possible while no set is known.
func TestPossibleTiers(t *testing.T) {
	both := []Tier{TierStandard, TierOptimized}
	whisper, fast := Available{Standard: true}, Available{Optimized: []string{"en"}}
	english := Options{ASRLanguage: new("en")}
	assert.Equal(t, both, PossibleTiers(english, nil))
	assert.Equal(t, both[:1], PossibleTiers(Options{ASRLanguage: new("de")}, nil))
	assert.Equal(t, both[:1], PossibleTiers(english, []Available{whisper, whisper}))
	assert.Equal(t, both, PossibleTiers(english, []Available{fast, whisper}))
	assert.Empty(t, PossibleTiers(Options{EnableASR: new(false)}, nil))
}
