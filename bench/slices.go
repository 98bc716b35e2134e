package bench

import (
	"fmt"
	"maps"
	"slices"
)

// slice is a group of recordings: all with one value of a manifest key.
type slice struct {
	Key        string               `json:"key"`
	Value      string               `json:"value"`
	Recordings int                  `json:"recordings"`
	Accuracy   map[string]*accuracy `json:"accuracy"` // by system name
}

func (s slice) String() string { return fmt.Sprintf("%s %s (%d)", s.Key, s.Value, s.Recordings) }

// valueOf returns an item's value of a key, "–" without one.
func valueOf(it Item, key string) string {
	value := it.Keys[key]
	if key == "language" {
		value = it.Language
	}
	if value == "" {
		return "–"
	}
	return value
}

// slices groups the recordings by the keys of By.
func (c Config) slices(r *Report) (list []slice) {
	for _, key := range c.By {
		at := map[string][]int{}
		for i, it := range c.Items {
			at[valueOf(it, key)] = append(at[valueOf(it, key)], i)
		}
		for _, value := range slices.Sorted(maps.Keys(at)) {
			part := slice{Key: key, Value: value, Recordings: len(at[value]), Accuracy: map[string]*accuracy{}}
			for _, s := range r.Systems {
				var items []itemReport
				for _, i := range at[value] {
					items = append(items, s.Items[i])
				}
				part.Accuracy[s.Name] = new(summarize(items, c.Seed))
			}
			list = append(list, part)
		}
	}
	return list
}
