package datasets

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// clipsDir is the folder of the recordings beside the tables of Common Voice.
const clipsDir = "clips"

// Table returns the rows of a table, and their lines, with the names of its columns in the first
// line, separated by tabs, commas or semicolons. One column names a file.
func Table(text string) (objects []map[string]any, lines []int, err error) {
	head, _, _ := strings.Cut(text, "\n")
	r := csv.NewReader(strings.NewReader(text))
	for _, comma := range ";,\t" {
		if strings.ContainsRune(head, comma) {
			r.Comma = comma
		}
	}
	r.LazyQuotes = r.Comma == '\t'
	names, err := r.Read()
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if err != nil || !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(append(otherNames["file"], "file"), strings.ToLower(n)) }) {
		return nil, nil, fmt.Errorf("%w: expected JSON objects, a list of them, or a table (CSV, TSV) with a column file or path and a column text, found %.60q", ErrManifest, head)
	}
	for {
		row, err := r.Read()
		if row == nil {
			return objects, lines, nil
		}
		n, _ := r.FieldPos(0)
		object := map[string]any{}
		for i := 0; i < min(len(row), len(names)) && err == nil; i++ {
			object[names[i]], err = tableValue(names[i], strings.TrimSpace(row[i]))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: line %d: %w", ErrManifest, n, err)
		}
		objects, lines = append(objects, object), append(lines, n)
	}
}

// tableValue returns the value of a cell; an empty number is null.
func tableValue(name, value string) (any, error) {
	switch strings.ToLower(name) {
	case "offset", "duration", "speakers":
		if value == "" {
			return nil, nil
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: expected a number, got %q", name, value)
		}
		return number, nil
	}
	return value, nil
}

// readTable reads a table as a manifest. A recording is relative to dir or to its
// folder "clips". Other columns become keys.
func readTable(text, dir string) (lines []numberedLine, err error) {
	objects, numbers, err := Table(text)
	for i, object := range objects {
		l := numberedLine{number: numbers[i]}
		data, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(data, &l.manifestLine)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrManifest, l.number, err)
		}
		if clip := filepath.Join(clipsDir, l.File); !exists(within(dir, l.File)) && exists(within(dir, clip)) {
			l.File = clip
		}
		lines = append(lines, l)
	}
	return lines, err
}

// numberedLine is an object of a manifest with its line.
type numberedLine struct {
	number int
	manifestLine
}

// readObjects reads JSON objects, or a list of them.
func readObjects(text string) (lines []numberedLine, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	list := strings.HasPrefix(strings.TrimSpace(text), "[")
	if list {
		_, _ = dec.Token() // the bracket
	}
	for {
		rest := strings.TrimLeft(text[dec.InputOffset():], ", \t\r\n") // the text from the object on
		l := numberedLine{number: 1 + strings.Count(text[:len(text)-len(rest)], "\n")}
		if rest == "" && !list || list && !dec.More() {
			break
		}
		if err := dec.Decode(&l.manifestLine); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrManifest, l.number, err)
		}
		lines = append(lines, l)
	}
	if list {
		if _, err := dec.Token(); err != nil {
			return nil, fmt.Errorf("%w: the list has no end: %w", ErrManifest, err)
		}
	}
	return lines, nil
}
