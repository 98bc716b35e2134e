package texts

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOtherLanguage(t *testing.T) {
	demo := []string{"en", "es", "fr", "pt", "de", "zh"}
	for _, test := range []struct {
		text, language string
		among          []string
		want           string
	}{
		{"Where can I buy a ticket for the train to London?", "en", demo, ""},
		{"Où est-ce que je peux acheter un billet pour Londres ?", "en", demo, "fr"},
		{"Wo kann ich eine Fahrkarte für den Zug nach London kaufen?", "en", demo, "de"},
		{"Wo kann ich eine Fahrkarte für den Zug nach London kaufen?", "de", demo, ""},
		{"我的钥匙在哪里？", "en", demo, "und"},
		{"我的钥匙在哪里？", "zh", demo, ""},
		{"我的钥匙在哪里？", "yue", nil, ""},
		{"Где находится ближайшая станция метро, скажите пожалуйста?", "en", []string{"en", "ru"}, "ru"},
		{"Где находится ближайшая станция?", "en", demo, "und"},
		{"駅はどこですか", "ja", nil, ""},
		{"東京大学", "ja", nil, ""},
		{"Where can I buy a ticket for the train to London?", "ja", []string{"ja", "en"}, "en"},
		{"OK", "zh", nil, ""},
		{"Paris, Berlin", "en", demo, ""},
		{"7 + 3 = 10", "en", demo, ""},
		{"", "en", demo, ""},
		{"Где находится станция?", "xx", demo, ""},
	} {
		assert.Equal(t, test.want, OtherLanguage(test.text, test.language, test.among), "%q in %s", test.text, test.language)
	}
}

// TestOtherLanguageIsDeterministic checks that repeated calls for a text return
// the same result.
func TestOtherLanguageIsDeterministic(t *testing.T) {
	const text = "Paulo, the train to Porto has no coffee, por favor"
	first := OtherLanguage(text, "en", nil)
	for range 50 {
		assert.Equal(t, first, OtherLanguage(text, "en", nil))
	}
}
