package bench

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/bench/internal/scores"
)

// wrongText is a recording with the passages of its reference in which a system
// has errors, and the texts of all systems there.
type wrongText struct {
	Name     string
	Sound    template.URL // address of the recording, "" if there is no file
	Failures []string     // of systems, with their reasons
	Passages []passage
	Cut      bool // some passages are left out
}

// passage is a part of the reference, word by word.
type passage []column

// column is a word of the reference with each system's words at its place.
type column struct {
	Reference string // "" before the first word
	Systems   [][]token
}

const (
	// mostWrong limits the number of recordings on the page with their texts.
	mostWrong = 200
	// mostColumns limits the words of one recording.
	mostColumns = 300
	// aroundWrong is how many correct words are shown on each side of an error.
	aroundWrong = 4
)

// wrongTexts returns the recordings with the most wrong words, the worst first,
// and the number of those without a file to play.
func (r *Report) wrongTexts() (list []wrongText, silent int) {
	if len(r.config.Items) == 0 { // the report was read from JSON
		return nil, 0
	}
	wrong := make([]int, len(r.Systems[0].Items))
	var order []int
	for i := range wrong {
		for _, s := range r.Systems {
			wrong[i] += len(s.Items[i].WrongWords)
		}
		if wrong[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wrong[b], wrong[a]) })
	for _, i := range order[:min(mostWrong, len(order))] {
		text := r.wrongText(i)
		if text.Sound == "" {
			silent++
		}
		list = append(list, text)
	}
	return list, silent
}

// wrongText shows the errors of the index-th recording.
func (r *Report) wrongText(index int) wrongText {
	item := r.config.Items[index]
	text := wrongText{Name: item.Name, Sound: r.config.sound(item)}
	language := item.Language
	for _, s := range r.Systems {
		language = cmp.Or(language, s.Items[index].Language)
	}
	units := func(text string) []string { return normalizedUnits(r.config.rules, language, text) }
	reference := units(*item.Text)
	columns := make([]column, len(reference)+1)
	for i := range columns {
		columns[i].Systems = make([][]token, len(r.Systems))
		if i > 0 {
			columns[i].Reference = reference[i-1]
		}
	}
	for k, s := range r.Systems {
		it := s.Items[index]
		if it.Error != "" {
			text.Failures = append(text.Failures, s.Name+" failed: "+it.Error)
			continue
		}
		piece := it.pieces(units)
		for _, t := range tokensOf(reference, units(it.Text)) {
			if t.Class != "" && text.Sound != "" {
				t.Sound = text.Sound + template.URL(piece(t.hypothesis)) //nolint:gosec // two numbers
			}
			at := &columns[t.reference+1].Systems[k]
			*at = append(*at, t)
		}
	}
	text.Passages, text.Cut = passages(columns)
	return text
}

// passages returns the columns around errors.
func passages(columns []column) (list []passage, cut bool) {
	last, shown := -2, 0
	for i := range columns {
		around := columns[max(0, i-aroundWrong):min(len(columns), i+aroundWrong+1)]
		if i == 0 {
			around = columns[:1] // no word; shown only for an error
		}
		if !slices.ContainsFunc(around, column.wrong) {
			continue
		}
		if shown++; shown > mostColumns {
			return list, true
		}
		if i > last+1 {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], columns[i])
		last = i
	}
	return list, false
}

// wrong reports whether a system has an error at the column's place.
func (c column) wrong() bool {
	return slices.ContainsFunc(c.Systems, func(tokens []token) bool {
		return slices.ContainsFunc(tokens, func(t token) bool { return t.Class != "" })
	})
}

const (
	// pieceMargin is the number of seconds played before and after a piece.
	pieceMargin = 0.5
	// longestPiece is the length, in seconds, up to which a line of a text is
	// played as a whole. Of a longer line, this many seconds around the
	// estimated time of the word are played.
	longestPiece = 12.0
)

// pieces returns a function from the index of a word in the text to the
// fragment of the recording's address that plays the line with the word: "" if
// the times of the lines are unknown.
func (it itemReport) pieces(units func(string) []string) func(word int) string {
	lines := strings.Split(it.Text, "\n")
	if len(lines) != len(it.Spans) {
		return func(int) string { return "" }
	}
	var ends []int // words up to the end of each line
	words := 0
	for _, line := range lines {
		words += len(units(line))
		ends = append(ends, words)
	}
	return func(word int) string {
		line, _ := slices.BinarySearch(ends, max(word, 0)+1)
		line = min(line, len(lines)-1)
		start, end := it.Spans[line][0], it.Spans[line][1]
		if end-start > longestPiece {
			first := ends[line] - len(units(lines[line]))
			middle := start + (end-start)*(float64(word-first)+0.5)/float64(max(ends[line]-first, 1))
			start, end = max(start, middle-longestPiece/2), min(end, middle+longestPiece/2)
		}
		return fmt.Sprintf("#t=%.1f,%.1f", max(0, start-pieceMargin), end+pieceMargin)
	}
}

// sound returns the address of a recording for the page: relative to its folder
// if that is known; "" for a missing file or a part of a file.
func (c Config) sound(it Item) template.URL {
	path, err := filepath.Abs(it.Path)
	if err != nil || it.Path == "" || it.Part != nil {
		return ""
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if c.RunFile != "" {
		if folder, err := filepath.Abs(filepath.Dir(c.RunFile)); err == nil {
			if relative, err := filepath.Rel(folder, path); err == nil {
				return template.URL((&url.URL{Path: filepath.ToSlash(relative)}).String()) //nolint:gosec // escaped
			}
		}
	}
	path = "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")
	return template.URL((&url.URL{Scheme: "file", Path: path}).String()) //nolint:gosec // escaped
}

// token is a word of an aligned text as displayed on the page.
type token struct {
	Text, Class, Title string
	// Sound is the recording's address around the word, "" without a file.
	Sound template.URL
	// reference and hypothesis are the word's indices in the two texts, or of
	// the word before it where a text lacks it; −1 before the first word.
	reference, hypothesis int
}

// tokensOf aligns a text with its reference; nil if both are too long.
func tokensOf(reference, text []string) (tokens []token) {
	edits, _ := scores.Align(reference, text)
	ref, hyp := -1, -1
	for _, e := range edits {
		ref, hyp = max(ref, e.Reference), max(hyp, e.Hypothesis)
		t := token{reference: ref, hypothesis: hyp}
		switch {
		case e.Hypothesis < 0:
			t.Text, t.Class, t.Title = reference[e.Reference], "missing", "missing"
		case e.Reference < 0:
			t.Text, t.Class, t.Title = text[e.Hypothesis], "added", "added"
		case reference[e.Reference] == text[e.Hypothesis]:
			t.Text = text[e.Hypothesis]
		default:
			t.Text, t.Class, t.Title = text[e.Hypothesis], "replaced", reference[e.Reference]
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// wrongWords lists the differences between a text and its reference: "a → b"
// for a substitution, "−a" for a deletion, "+b" for an insertion.
func wrongWords(tokens []token) (list []string) {
	for _, t := range tokens {
		switch t.Class {
		case "missing":
			list = append(list, "−"+t.Text)
		case "added":
			list = append(list, "+"+t.Text)
		case "replaced":
			list = append(list, t.Title+" → "+t.Text)
		}
	}
	return list
}
