package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestUnitsByLanguage(t *testing.T) {
	tests := []struct{ language, text, want string }{
		{"en", "Hello, World!", "hello|world"},
		{"en", "Don't stop — it's 'fine'.", "don't|stop|it's|fine"},
		{"en", "twenty-one", "twenty|one"},
		{"fr", "L’été où ça va ?", "l'été|où|ça|va"},
		{"de", "Straße", "straße"},
		{"zh", "你好，世界。", "你|好|世|界"},
		{"zh", "用 iPhone 15 打电话", "用|iphone|15|打|电|话"},
		{"", "ＡＢＣ", "abc"},
		{"en", "  ", ""},
		{"en", "don`t don´t don′t don‘t don＇t donʼt", "don't|don't|don't|don't|don't|don't"},
		{"en", "`quoted´ ‘too’ dogs’ 90’s", "quoted|too|dogs|90's"},
		{"de", "Reise\u00adkosten", "reisekosten"},
		{"fa", "می\u200cخواهم", "میخواهم"},
		{"tr", "IŞIK İyi", "ışık|iyi"},
		{"az", "IŞIQ", "ışıq"},
		{"en", "I IT", "i|it"},
		{"de", "GROẞ e\u0301 ７", "groß|é|7"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, strings.Join(Units(tt.language, tt.text), "|"), tt.text)
	}
}

func TestCompareWords(t *testing.T) {
	tests := []struct {
		ref, hyp      string
		sub, del, ins int
	}{
		{"a b c", "a b c", 0, 0, 0},
		{"a b c", "a x c", 1, 0, 0},
		{"a b c", "a c", 0, 1, 0},
		{"a b c", "a b x c", 0, 0, 1},
		{"a b c", "", 0, 3, 0},
		{"", "a b", 0, 0, 2},
		{"a b c d", "b c d e", 0, 1, 1},
	}
	for _, tt := range tests {
		got := CompareWords(strings.Fields(tt.ref), strings.Fields(tt.hyp))
		want := WordErrors{Substitutions: tt.sub, Deletions: tt.del, Insertions: tt.ins, Reference: len(strings.Fields(tt.ref))}
		assert.Equal(t, want, got, "%q against %q", tt.ref, tt.hyp)
	}
	assert.Equal(t, 1.0, CompareWords(nil, []string{"a", "b"}).Rate())
	assert.Equal(t, 0.0, CompareWords(nil, nil).Rate())
}

// Properties of every alignment: the counts add up, and swapping the sides
// swaps insertions and deletions.
func TestCompareWordsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		ref := rapid.SliceOfN(word, 0, 12).Draw(t, "ref")
		hyp := rapid.SliceOfN(word, 0, 12).Draw(t, "hyp")
		e, back := CompareWords(ref, hyp), CompareWords(hyp, ref)
		assert.Equal(t, len(hyp)-len(ref), e.Insertions-e.Deletions)
		assert.Equal(t, e.Errors(), back.Errors())
		assert.LessOrEqual(t, e.Errors(), max(len(ref), len(hyp)))
		if assert.ObjectsAreEqual(ref, hyp) {
			assert.Zero(t, e.Errors())
		}
	})
}
