package scores

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sentence is a line of testdata/sentences.py.
type sentence struct{ Text, Whisper, Basic string }

// compareTexts compares our texts with the cases' and returns the number of
// cases.
func compareTexts(t *testing.T, cases io.Reader) (n int) {
	t.Helper()
	english, err := FindNormalizer("whisper")
	require.NoError(t, err)
	simple, err := FindNormalizer("basic")
	require.NoError(t, err)
	for lines := bufio.NewScanner(cases); lines.Scan(); n++ {
		var s sentence
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		assert.Equal(t, s.Whisper, english.Text("en", s.Text), "whisper: %q", s.Text)
		assert.Equal(t, s.Basic, simple.Text("de", s.Text), "basic: %q", s.Text)
	}
	return n
}

// TestRecordedSentences compares with whisper-normalizer's output.
func TestRecordedSentences(t *testing.T) {
	f, err := os.Open("testdata/sentences.jsonl")
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, 90, compareTexts(t, f))
}

func TestLeaderboardsNormalizer(t *testing.T) {
	n, err := FindNormalizer("openasr-2026")
	require.NoError(t, err)
	for text, want := range map[string]string{
		"Huh... uhm, OK": " okay",
		"The U.S.A.'s dog's wi-fi, e-mail at 5 G": "the usas dog s wifi email at 5g",
		"A.B.C.s and B B C, it's all right":       "abcs and bbc it is alright",
		"cause kinda":                             "cause kinda", "a I i": "aii", "colour: two hundred and five dollars": "color $205",
	} {
		assert.Equal(t, want, n.Text("en", text), text)
	}
}

func TestFindNormalizer(t *testing.T) {
	n, err := FindNormalizer("none")
	require.NoError(t, err)
	assert.Equal(t, "Ünchanged, (as is).", n.Text("de", "Ünchanged, (as is)."))
	_, err = FindNormalizer("whisper-2")
	require.ErrorContains(t, err, "expected one of none, basic, whisper")
	for _, want := range normalizers {
		n, err := FindNormalizer(want.Name)
		require.NoError(t, err)
		assert.Equal(t, want.Name+" ("+want.Version+")", n.String())
	}
}

func FuzzText(f *testing.F) {
	f.Add("five and a half million dollars and seven cents, 1. 2.3. per cent minus")
	f.Add("double oh seven point triple nine decillion hundredths A.B.C.'s ¢7 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, n := range normalizers {
			n.Text("en", s)
			n.Text("fr", s)
		}
	})
}

// TestSilentSpellingIsEqual: spelling that carries no sound makes no
// difference.
func TestSilentSpellingIsEqual(t *testing.T) {
	n, err := FindNormalizer("letters")
	require.NoError(t, err)
	for _, c := range [][3]string{
		{"ar", "السَّلامُ عليـــكم", "السلام عليكم"},
		{"fa", "كتاب\u200cهای من، خوبي", "کتابهای من خوبی"},
		{"ko", "안녕 하세요.", "안녕하세요"},
		{"en", "It's OK!", "it's ok"},
		{"ar", "أحمد إلى آخر المدرسة ٤٥", "احمد الي اخر المدرسه 45"},
		{"he", "שָׁלוֹם אֶל־עַמִּי", "שלום אל עמי"},
		{"ur", "ہے ھے", "هے ہے"},
		{"fa", "می خواهم کتاب ها را بزرگ\u200cترین ۱۲", "می\u200cخواهم کتاب\u200cها را بزرگ ترین 12"},
		{"fr", "Cafe\u0301 à", "café à"},
	} {
		assert.Equal(t, strings.Fields(n.Text(c[0], c[2])), strings.Fields(n.Text(c[0], c[1])), "%s", c[1])
	}
	assert.NotEqual(t, n.Text("ar", "كتب"), n.Text("ar", "كتاب"))
}
