package scores

import (
	"fmt"
	"slices"
	"strings"
)

// alternatives lists texts; a reference accepts any one of them.
type alternatives []string

// parseAlternatives reads a reference with NIST's marks: "{ a / b c / @ }" are
// alternatives, where @ is the empty text, and "(uh)" may be absent. inside
// reports that the last alternatives have no end.
func parseAlternatives(text string) (list []alternatives, inside bool) {
	for _, word := range strings.Fields(text) {
		last := len(list) - 1
		switch {
		case !inside && word == "{":
			inside = true
			list = append(list, alternatives{""})
		case inside && word == "}":
			inside = false
		case inside && word == "/":
			list[last] = append(list[last], "")
		case inside && word != "@":
			n := len(list[last]) - 1
			list[last][n] = strings.TrimSpace(list[last][n] + " " + word)
		case inside:
		case len(word) > 2 && word[0] == '(' && word[len(word)-1] == ')':
			list = append(list, alternatives{word[1 : len(word)-1], ""})
		default:
			list = append(list, alternatives{word})
		}
	}
	return list, inside
}

// WithoutMarks returns a text with the first of NIST's alternatives. The error
// quotes alternatives without an end.
func WithoutMarks(text string) (string, error) {
	list, inside := parseAlternatives(text)
	if inside {
		return "", fmt.Errorf("alternatives without an end: expected } after %.60q", text[strings.LastIndex(text, "{"):])
	}
	var words []string
	for _, a := range list {
		words = append(words, a[0])
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "), nil
}

// path is the cheapest way to a column of an alignment, and the alternatives
// that it takes, the last one first.
type path struct {
	cost   int
	chosen *chosen
}

type chosen struct {
	text   string
	before *chosen
}

// Resolve chooses among NIST's alternatives in a reference, as sclite does,
// those with which the hypothesis has the fewest errors. units splits a text.
func Resolve(reference, hypothesis string, units func(string) []string) string {
	hyp := units(hypothesis)
	row := make([]path, len(hyp)+1)
	for i := range row {
		row[i].cost = i
	}
	list, _ := parseAlternatives(reference)
	for _, options := range list {
		var best []path
		for _, option := range options {
			next := align(row, units(option), hyp)
			for i, p := range next {
				if best == nil || p.cost < best[i].cost {
					p.chosen = &chosen{option, p.chosen}
					next[i] = p
				} else {
					next[i] = best[i]
				}
			}
			best = next
		}
		row = best
	}
	var words []string
	for c := row[len(hyp)].chosen; c != nil; c = c.before {
		if c.text != "" {
			words = append(words, c.text)
		}
	}
	slices.Reverse(words)
	return strings.Join(words, " ")
}

// cheaper returns the path of lower cost, a if both cost the same.
func cheaper(a, b path) path {
	if b.cost < a.cost {
		return b
	}
	return a
}

// align continues an alignment by words of the reference.
func align(row []path, words, hyp []string) []path {
	row = slices.Clone(row)
	for _, word := range words {
		diagonal := row[0]
		row[0].cost++
		for j, h := range hyp {
			above := row[j+1]
			if h != word {
				diagonal.cost++
			}
			deleted, inserted := above, row[j]
			deleted.cost++
			inserted.cost++
			row[j+1] = cheaper(cheaper(diagonal, deleted), inserted)
			diagonal = above
		}
	}
	return row
}
