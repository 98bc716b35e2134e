package spec

import (
	_ "embed" // the class list
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// NumEventClasses is the number of classes, and of scores per frame.
const NumEventClasses = 521

//go:embed eventclasses.csv
var eventClassesCSV string

// EventClass is one kind of sound: one of YAMNet's 521 classes of AudioSet.
type EventClass struct {
	Index       int    `json:"index"`        // 0 … 520: the index of its score in a frame
	MID         string `json:"mid"`          // AudioSet's identifier
	DisplayName string `json:"display_name"` // English name, unique; the name used in options and results
	ZhName      string `json:"zh_name"`      // Chinese name, unique
	Category    string `json:"category"`     // one of eight, in English
	CategoryZh  string `json:"category_zh"`  // the category in Chinese
}

type eventClassList struct {
	classes []EventClass
	byName  map[string]int
	kinds   []int // number of the classes after each that are kinds of it
}

// loadEventClasses parses the embedded list once. It panics if the list is
// wrong, because that is a build error.
var loadEventClasses = sync.OnceValue(func() eventClassList {
	rows, err := csv.NewReader(strings.NewReader(eventClassesCSV)).ReadAll()
	if err != nil || len(rows) != NumEventClasses+1 {
		panic(fmt.Sprintf("spec: the embedded class list has %d rows, expected %d (%v)", len(rows), NumEventClasses+1, err))
	}
	t := eventClassList{byName: make(map[string]int, NumEventClasses)}
	for i, r := range rows[1:] {
		n, err := strconv.Atoi(r[0])
		kinds, wrong := strconv.Atoi(r[len(r)-1])
		if err != nil || wrong != nil || n != i || len(r) != 7 {
			panic(fmt.Sprintf("spec: row %d of the embedded class list is %q", i+1, r))
		}
		t.byName[r[2]] = i
		t.kinds = append(t.kinds, kinds)
		t.classes = append(t.classes, EventClass{Index: i, MID: r[1], DisplayName: r[2], ZhName: r[3], Category: r[4], CategoryZh: r[5]})
	}
	return t
})

// EventClasses returns the 521 classes by index. The caller owns the slice.
func EventClasses() []EventClass { return slices.Clone(loadEventClasses().classes) }

// EventClassAt returns the class with an index, 0 to 520.
func EventClassAt(index int) EventClass { return loadEventClasses().classes[index] }

// LookupEventClass finds a class by its exact English name.
func LookupEventClass(displayName string) (EventClass, bool) {
	t := loadEventClasses()
	i, ok := t.byName[displayName]
	if !ok {
		return EventClass{}, false
	}
	return t.classes[i], true
}

// NearestEventClass returns the English name of the class whose name is most
// similar to the given one. It uses the smallest number of edits, ignoring
// case, to the whole English name, to one of its comma-separated parts ("car
// horn" in "Vehicle horn, car horn, honking"), or to the Chinese name.
func NearestEventClass(name string) string {
	want := []rune(strings.ToLower(strings.TrimSpace(name)))
	want = want[:min(len(want), longestName)]
	best, least := "", -1
	for _, c := range loadEventClasses().classes {
		names := append(strings.Split(c.DisplayName, ","), c.DisplayName, c.ZhName)
		for _, n := range names {
			n = strings.ToLower(strings.TrimSpace(n))
			// An edit to a long name weighs less than one to a short name.
			d := 100 * editDistance(want, []rune(n)) / max(len(want), utf8.RuneCountInString(n), 1)
			if least < 0 || d < least {
				best, least = c.DisplayName, d
			}
		}
	}
	return best
}

// Includes reports whether other is a kind of c, as a dog is a kind of animal;
// no class is a kind of itself. AudioSet lists a class before its kinds.
func (c EventClass) Includes(other EventClass) bool {
	return other.Index > c.Index && other.Index <= c.Index+c.Generality()
}

// Generality returns the number of classes that are kinds of c: 0 for the most
// specific, and for an index that is not in the list.
func (c EventClass) Generality() int {
	if c.Index < 0 || c.Index >= NumEventClasses {
		return 0
	}
	return loadEventClasses().kinds[c.Index]
}
