package events

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClasses(t *testing.T) {
	classes := Classes()
	require.Len(t, classes, NumClasses)
	categories := map[string]string{}
	mids := map[string]bool{}
	for i, c := range classes {
		assert.Equal(t, i, c.Index)
		for _, field := range []string{c.MID, c.DisplayName, c.ZhName, c.Category, c.CategoryZh} {
			assert.NotEmpty(t, field)
		}
		mids[c.MID] = true
		categories[c.Category] = c.CategoryZh
		found, ok := Lookup(c.DisplayName)
		assert.True(t, ok)
		assert.Equal(t, c, found)
		assert.Equal(t, c.DisplayName, Nearest(c.DisplayName))
	}
	assert.Len(t, mids, NumClasses)
	assert.Len(t, categories, 8)
	assert.Equal(t, Class{0, "/m/09x0r", "Speech", "说话声", "Human sounds and body sounds", "人声与身体声音"}, classes[0])
	classes[0].DisplayName = "changed"
	assert.Equal(t, "Speech", Classes()[0].DisplayName, "the list is a copy")
	_, ok := Lookup("speech")
	assert.False(t, ok, "names are exact")
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"speech":     "Speech",
		"SPEACH":     "Speech",
		"car horn":   "Vehicle horn, car horn, honking",
		"dog":        "Dog",
		"babys cry":  "Baby cry, infant cry",
		"telefone":   "Telephone",
		"说话声":        "Speech",
		"Laughterr ": "Laughter",
	} {
		assert.Equal(t, want, Nearest(name), name)
	}
	assert.NotEmpty(t, Nearest(""))
}

func FuzzNearest(f *testing.F) {
	f.Add("Speach")
	f.Add("")
	f.Add("\xff\xfe,,,")
	f.Fuzz(func(t *testing.T, name string) {
		got := Nearest(name)
		if _, ok := Lookup(got); !ok {
			t.Fatalf("%q is no class", got)
		}
		if err := (Options{Classes: []string{name}}).Validate(); err != nil && utf8.RuneCountInString(err.Error()) > 300 {
			t.Fatalf("an error of %d characters", utf8.RuneCountInString(err.Error()))
		}
	})
}
