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

// TestGeneralKinds: the kinds of a class are in the list, each with its own
// kinds, and some families match AudioSet.
func TestGeneralKinds(t *testing.T) {
	classes := EventClasses()
	for i, c := range classes {
		last := i + c.Generality()
		require.Less(t, last, NumEventClasses)
		for _, kind := range classes[i+1 : last+1] {
			assert.LessOrEqual(t, kind.Index+kind.Generality(), last, "%s cuts %s", c.DisplayName, kind.DisplayName)
		}
	}
	class := func(name string) EventClass {
		c, ok := LookupEventClass(name)
		require.True(t, ok, name)
		return c
	}
	for _, family := range [][]string{
		{"Animal", "Domestic animals, pets", "Dog", "Bow-wow"},
		{"Music", "Musical instrument", "Keyboard (musical)", "Organ", "Hammond organ"},
		{"Vehicle", "Motor vehicle (road)", "Car", "Race car, auto racing"},
		{"Alarm", "Telephone", "Telephone bell ringing"},
		{"Tools", "Power tool", "Drill"},
	} {
		for i, general := range family {
			for _, kind := range family[i+1:] {
				assert.True(t, class(general).Includes(class(kind)), "%s, %s", general, kind)
				assert.False(t, class(kind).Includes(class(general)), "%s, %s", kind, general)
				assert.Greater(t, class(general).Generality(), class(kind).Generality())
			}
		}
	}
	assert.False(t, class("Dog").Includes(class("Dog")))
	assert.False(t, class("Dog").Includes(class("Meow")))
	assert.False(t, class("Music").Includes(class("Wind")))
	assert.Zero(t, class("Silence").Generality())
	for _, index := range []int{-1, NumEventClasses} {
		unknown := EventClass{Index: index}
		assert.Zero(t, unknown.Generality())
		assert.False(t, unknown.Includes(class("Dog")))
	}
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
