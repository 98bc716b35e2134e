package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEventClasses(t *testing.T) {
	classes := EventClasses()
	require.Len(t, classes, NumEventClasses)
	categories := map[string]string{}
	mids := map[string]bool{}
	for i, c := range classes {
		assert.Equal(t, i, c.Index)
		for _, field := range []string{c.MID, c.DisplayName, c.ZhName, c.Category, c.CategoryZh} {
			assert.NotEmpty(t, field)
		}
		mids[c.MID] = true
		categories[c.Category] = c.CategoryZh
		found, ok := LookupEventClass(c.DisplayName)
		assert.True(t, ok)
		assert.Equal(t, c, found)
		assert.Equal(t, c.DisplayName, NearestEventClass(c.DisplayName))
	}
	assert.Len(t, mids, NumEventClasses)
	assert.Len(t, categories, 8)
	assert.Equal(t, EventClass{0, "/m/09x0r", "Speech", "说话声", "Human sounds and body sounds", "人声与身体声音"}, classes[0])
	classes[0].DisplayName = "changed"
	assert.Equal(t, "Speech", EventClasses()[0].DisplayName, "the list is a copy")
	_, ok := LookupEventClass("speech")
	assert.False(t, ok, "names are exact")
}

func TestNearestEventClass(t *testing.T) {
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
		assert.Equal(t, want, NearestEventClass(name), name)
	}
	assert.NotEmpty(t, NearestEventClass(""))
}

func FuzzNearestEventClass(f *testing.F) {
	f.Add("Speach")
	f.Add("")
	f.Add("\xff\xfe,,,")
	f.Fuzz(func(t *testing.T, name string) {
		got := NearestEventClass(name)
		if _, ok := LookupEventClass(got); !ok {
			t.Fatalf("%q is not a class", got)
		}
	})
}
