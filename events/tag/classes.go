package tag

import (
	_ "embed" // the list of AudioSet's 527 classes
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/otograph/otograph/spec"
)

//go:embed panns527.csv
var fullCSV string

// fullColumns returns the column of each of the 521 classes among the 527, by
// AudioSet's identifier. The other six have parents that are scored as well. It
// panics if the embedded list is wrong, because that is a build error.
var fullColumns = sync.OnceValue(func() []int {
	rows, err := csv.NewReader(strings.NewReader(fullCSV)).ReadAll()
	if err != nil || len(rows) != fullClasses+1 {
		panic(fmt.Sprintf("tag: the embedded class list has %d rows, expected %d (%v)", len(rows), fullClasses+1, err))
	}
	byMID := make(map[string]int, fullClasses)
	for i, r := range rows[1:] {
		if n, err := strconv.Atoi(r[0]); err != nil || n != i {
			panic(fmt.Sprintf("tag: row %d of the embedded class list is %q", i+1, r))
		}
		byMID[r[1]] = i
	}
	columns := make([]int, spec.NumEventClasses)
	for _, c := range spec.EventClasses() {
		column, ok := byMID[c.MID]
		if !ok {
			panic(fmt.Sprintf("tag: class %s (%s) is not among the 527", c.DisplayName, c.MID))
		}
		columns[c.Index] = column
	}
	return columns
})

// pick copies the 521 scores from a row of classes scores to dst.
func pick(dst, row []float32) {
	if len(row) == spec.NumEventClasses {
		copy(dst, row)
		return
	}
	for i, c := range fullColumns() {
		dst[i] = row[c]
	}
}
