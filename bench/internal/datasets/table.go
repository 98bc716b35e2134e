package datasets

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tableColumns lists the names that the columns of a table have in manifests of
// Common Voice, Hugging Face and others, by the manifest's keys.
var tableColumns = map[string][]string{
	"file":     {"file", "path", "audio_filepath", "audio", "wav", "wav_filename", "file_name", "filename"},
	"text":     {"text", "sentence", "transcript", "transcription"},
	"language": {"language", "lang", "locale"},
	"offset":   {"offset"},
	"duration": {"duration"},
}

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
	keys := map[string]int{}
	for i, name := range names {
		for key, others := range tableColumns {
			if slices.Contains(others, strings.ToLower(strings.TrimSpace(name))) {
				keys[key] = i
			}
		}
	}
	if _, ok := keys["file"]; err != nil || !ok {
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
			l, err = tableLine(names, row, keys, dir)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrManifest, n, err)
		}
		lines = append(lines, numberedLine{n, l})
	}
	return lines, nil
}

// tableLine returns a row of a table as an object of a manifest.
func tableLine(names, row []string, keys map[string]int, dir string) (manifestLine, error) {
	l := manifestLine{keys: map[string]string{}}
	for i, value := range row[:min(len(row), len(names))] {
		if i != keys["file"] && strings.TrimSpace(names[i]) != "text" {
			l.keys[strings.TrimSpace(names[i])] = value
		}
	}
	field := func(key string) (string, bool) {
		i, ok := keys[key]
		if !ok || i >= len(row) {
			return "", ok
		}
		return strings.TrimSpace(row[i]), true
	}
	l.File, _ = field("file")
	clip := filepath.Join(clipsDir, l.File)
	if _, err := os.Stat(within(dir, l.File)); err != nil {
		if _, err := os.Stat(within(dir, clip)); err == nil {
			l.File = clip
		}
	}
	if text, ok := field("text"); ok {
		l.Text = &text
	}
	l.Language, _ = field("language")
	for key, to := range map[string]**float64{"offset": &l.Offset, "duration": &l.Duration} {
		if value, _ := field(key); value != "" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return l, fmt.Errorf("%s: expected seconds, got %q", key, value)
			}
			*to = &seconds
		}
	}
	return l, nil
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
