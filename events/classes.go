package events

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

// NumClasses is the number of classes, and of scores per frame.
const NumClasses = 521

//go:embed classes.csv
var classesCSV string

// Class is one kind of sound: one of the 521 of AudioSet that YAMNet has.
type Class struct {
	Index       int    `json:"index"`        // 0 … 520: the place of its score in a frame
	MID         string `json:"mid"`          // AudioSet's identifier
	DisplayName string `json:"display_name"` // English name, unique; the name used in options and results
	ZhName      string `json:"zh_name"`      // Chinese name, unique
	Category    string `json:"category"`     // one of eight, in English
	CategoryZh  string `json:"category_zh"`  // the same in Chinese
}

// table is the parsed list.
type table struct {
	classes []Class
	byName  map[string]int
}

// load parses the embedded list once. The list is part of the program: a fault in
// it is a fault of the build, and panics.
var load = sync.OnceValue(func() table {
	rows, err := csv.NewReader(strings.NewReader(classesCSV)).ReadAll()
	if err != nil || len(rows) != NumClasses+1 {
		panic(fmt.Sprintf("events: the embedded class list has %d rows, expected %d (%v)", len(rows), NumClasses+1, err))
	}
	t := table{byName: make(map[string]int, NumClasses)}
	for i, r := range rows[1:] {
		if n, err := strconv.Atoi(r[0]); err != nil || n != i || len(r) != 6 {
			panic(fmt.Sprintf("events: row %d of the embedded class list is %q", i+1, r))
		}
		t.byName[r[2]] = i
		t.classes = append(t.classes, Class{Index: i, MID: r[1], DisplayName: r[2], ZhName: r[3], Category: r[4], CategoryZh: r[5]})
	}
	return t
})

// Classes lists the 521 classes by index. The slice is the caller's.
func Classes() []Class { return slices.Clone(load().classes) }

// Lookup finds a class by its exact English name.
func Lookup(displayName string) (Class, bool) {
	t := load()
	i, ok := t.byName[displayName]
	if !ok {
		return Class{}, false
	}
	return t.classes[i], true
}

// longestName bounds the part of a name that Nearest looks at, in runes.
const longestName = 80

// Nearest is the English name of the class whose name is most like the given one:
// the least number of edits, case aside, to the whole English name, to one of its
// comma-separated parts ("car horn" in "Vehicle horn, car horn, honking"), or to
// the Chinese name.
func Nearest(name string) string {
	want := []rune(strings.ToLower(strings.TrimSpace(name)))
	if len(want) > longestName {
		want = want[:longestName]
	}
	best, least := "", -1
	for _, c := range load().classes {
		names := append(strings.Split(c.DisplayName, ","), c.DisplayName, c.ZhName)
		for _, n := range names {
			n = strings.ToLower(strings.TrimSpace(n))
			// An edit to a long name matters less than one to a short one.
			d := 100 * edits(want, []rune(n)) / max(len(want), utf8.RuneCountInString(n), 1)
			if least < 0 || d < least {
				best, least = c.DisplayName, d
			}
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
