package otograph

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every language of interest × optimize × optimize_zh × loaded models, against
// the specification's table written out as a rule.
func TestTierFor(t *testing.T) {
	loads := map[string]func(string) bool{
		"no optimized model":    func(string) bool { return false },
		"one for en":            func(l string) bool { return l == "en" },
		"one for all":           func(string) bool { return true },
		"one for zh, es and de": func(l string) bool { return l == "zh" || l == "es" || l == "de" },
	}
	bools := []*bool{nil, new(true), new(false)}
	show := func(b *bool) string {
		if b == nil {
			return "null"
		}
		return fmt.Sprint(*b)
	}
	for _, language := range []string{"zh", "en", "es", "fr", "pt", "de", "ja", "ko", "yue", "ru"} {
		five := map[string]bool{"zh": true, "en": true, "es": true, "fr": true, "pt": true}[language]
		for what, loaded := range loads {
			for _, optimize := range bools {
				want := TierStandard
				if five && loaded(language) && show(optimize) != "false" {
					want = TierOptimized
				}
				got := tierFor(language, EffectiveOptions{Optimize: optimize}, loaded)
				assert.Equal(t, want, got, "%s, optimize=%s, %s", language, show(optimize), what)
			}
			for _, zh := range bools[1:] { // the earlier variant
				want := TierStandard
				if language == "zh" && loaded("zh") && *zh {
					want = TierOptimized
				}
				got := tierFor(language, EffectiveOptions{OptimizeZh: zh}, loaded)
				assert.Equal(t, want, got, "%s, optimize_zh=%s, %s", language, show(zh), what)
			}
		}
	}
}
