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

// readTable reads a table with the names of its columns in the first line,
// separated by tabs, commas or semicolons. A recording is relative to dir or to
// its folder "clips". Other columns become keys.
func readTable(text, dir string) ([]numberedLine, error) {
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
		return nil, fmt.Errorf("%w: expected JSON objects, a list of them, or a table (CSV, TSV) with a column file or path and a column text, found %.60q", ErrManifest, head)
	}
	var lines []numberedLine
	for {
		row, err := r.Read()
		if row == nil {
			break
		}
		n, _ := r.FieldPos(0)
		var l manifestLine
		if err == nil {
			l, err = tableLine(names, row, dir)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrManifest, n, err)
		}
		lines = append(lines, numberedLine{n, l})
	}
	return lines, nil
}

// tableLine returns a row of a table as an object of a manifest.
func tableLine(names, row []string, dir string) (l manifestLine, err error) {
	object := map[string]any{}
	for i, name := range names[:min(len(row), len(names))] {
		value := strings.TrimSpace(row[i])
		switch strings.ToLower(name) {
		case "offset", "duration", "speakers":
			if value == "" {
				continue
			}
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return l, fmt.Errorf("%s: expected a number, got %q", name, value)
			}
			object[name] = number
		default:
			object[name] = value
		}
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if clip := filepath.Join(clipsDir, l.File); !exists(within(dir, l.File)) && exists(within(dir, clip)) {
		l.File = clip
	}
	return l, err
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
