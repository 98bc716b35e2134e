package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGeneralKinds: the ranges are in order, each lies wholly inside or outside
// every other one, and some families match AudioSet.
func TestGeneralKinds(t *testing.T) {
	for i, a := range generalKinds {
		assert.Less(t, a.first, a.last)
		assert.Less(t, a.last, NumEventClasses)
		for _, b := range generalKinds[i+1:] {
			assert.Less(t, a.first, b.first)
			assert.True(t, b.first > a.last || b.last <= a.last, "%v cuts %v", b, a)
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
}
