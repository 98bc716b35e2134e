package texts

import (
	"fmt"
	"strings"
)

// speller spells whole numbers by rules like those of Unicode's RBNF.
type speller struct {
	small []string // the numbers below the first rule's
	rules []rule
	joint func(rest, unit int) string
}

// rule spells the numbers from a first one: count times unit and a rest. In
// text, "<" stands for the count, ">" for the rest, "~" for the joint before
// it, and "[a|b]" for a with a rest, for b without one.
type rule struct {
	from, unit int
	text       string
}

// newSpeller reads the rules "from text" or "from/unit text", separated by
// commas; the usual unit is the largest power of ten in from.
func newSpeller(small, rules string, joint func(rest, unit int) string) *speller {
	s := &speller{small: strings.Fields(small), joint: joint}
	for line := range strings.SplitSeq(rules, ",") {
		r := rule{unit: 1}
		number, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, _ := fmt.Sscanf(number, "%d/%d", &r.from, &r.unit); n < 2 {
			for r.from/r.unit >= 10 {
				r.unit *= 10
			}
		}
		r.text = text
		s.rules = append(s.rules, r)
	}
	return s
}

// spell returns the words of a number that is not negative.
func (s *speller) spell(n int) string {
	if n < len(s.small) {
		return s.small[n]
	}
	i := len(s.rules) - 1
	for s.rules[i].from > n {
		i--
	}
	return s.apply(s.rules[i], n)
}

func (s *speller) apply(r rule, n int) string {
	rest := n % r.unit
	before, options, _ := strings.Cut(r.text, "[")
	options, after, _ := strings.Cut(options, "]")
	with, without, _ := strings.Cut(options, "|")
	if rest == 0 {
		with = without
	}
	var b strings.Builder
	for _, c := range before + with + after {
		switch c {
		case '<':
			b.WriteString(s.spell(n / r.unit))
		case '>':
			b.WriteString(s.spell(rest))
		case '~':
			b.WriteString(s.joint(rest, r.unit))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
