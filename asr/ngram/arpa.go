package ngram

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// ErrFormat marks a file that is no language model in the ARPA format.
var ErrFormat = errors.New("no language model in the ARPA format")

const (
	// maxOrder is the longest n-gram accepted, the longest of KenLM as it comes.
	maxOrder = 6
	// maxNGrams bounds a model in memory, where an n-gram takes 20 bytes.
	maxNGrams = 100 << 20
)

const (
	sentenceStart = "<s>"
	sentenceEnd   = "</s>"
	unknownWord   = "<unk>"
)

// Parse reads a language model in the ARPA format, which SRILM, KenLM and
// others write: \data\, the number of n-grams of each length; for each length N
// a line \N-grams: and lines of log10 probability, N words and, where it is not
// 0, log10 back-off weight; \end\. Words are lower-cased; n-grams that differ
// by case alone become one, with the greater probability. name appears in
// errors, which wrap ErrFormat and contain the line, what was expected and what
// was found.
func Parse(name string, data []byte) (*Model, error) {
	p := &reader{lines: bufio.NewScanner(bytes.NewReader(data))}
	m, err := p.model()
	if errors.Is(p.lines.Err(), bufio.ErrTooLong) {
		err = fmt.Errorf("line %d: more than %d bytes long", p.line+1, bufio.MaxScanTokenSize)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrFormat, err)
	}
	return m, nil
}

// gram is one n-gram as it is read: the node of all but its last word, and that.
type gram struct {
	parent, word     int32
	logProb, backoff float32
}

// reader goes through the lines of a file.
type reader struct {
	lines *bufio.Scanner
	line  int
	text  string // of that line, without spaces around it
}

// next moves to the next line with something on it.
func (p *reader) next() bool {
	for p.lines.Scan() {
		p.line++
		if p.text = strings.TrimSpace(p.lines.Text()); p.text != "" {
			return true
		}
	}
	p.text = "the end of the file"
	return false
}

func (p *reader) expected(format string, a ...any) error {
	return fmt.Errorf("line %d: expected %s, found %.80q", p.line, fmt.Sprintf(format, a...), p.text)
}

func (p *reader) model() (*Model, error) {
	for p.text != `\data\` { // what stands before is a comment
		if !p.next() {
			return nil, p.expected(`\data\, with which a language model in the ARPA format begins`)
		}
	}
	counts, err := p.counts()
	if err != nil {
		return nil, err
	}
	m := &Model{end: -1}
	m.add([]gram{{}}) // the empty n-gram
	for i, count := range counts {
		order := i + 1
		if want := fmt.Sprintf(`\%d-grams:`, order); p.text != want {
			return nil, p.expected("%s after %d shorter n-grams", want, len(m.word)-1)
		}
		var grams []gram
		if order == 1 {
			grams, err = p.unigrams(m, count)
		} else {
			grams, err = p.longer(m, order, count)
		}
		if err != nil {
			return nil, err
		}
		m.add(grams)
		p.next()
	}
	if p.text != `\end\` {
		return nil, p.expected(`\end\`)
	}
	m.link()
	return m, nil
}

// counts reads how many n-grams of each length there are.
func (p *reader) counts() ([]int, error) {
	var counts []int
	total := 0
	for p.next() && strings.HasPrefix(p.text, "ngram ") {
		length, number, _ := strings.Cut(strings.TrimPrefix(p.text, "ngram "), "=")
		order := len(counts) + 1
		if strings.TrimSpace(length) != strconv.Itoa(order) || order > maxOrder {
			return nil, p.expected("ngram %d=COUNT, with n-grams of at most %d words", order, maxOrder)
		}
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 0 || n > maxNGrams-total {
			return nil, p.expected("ngram %d=COUNT, with at most %d n-grams in all", order, maxNGrams)
		}
		counts, total = append(counts, n), total+n
	}
	if total == 0 {
		return nil, p.expected("ngram 1=COUNT")
	}
	return counts, nil
}

// entry reads one n-gram: its numbers as natural logarithms, and its words.
func (p *reader) entry(order, count, i int) (g gram, words []string, err error) {
	if !p.next() || p.text[0] == '\\' {
		return g, nil, p.expected("n-gram %d of the %d with %d words", i+1, count, order)
	}
	fields := strings.Fields(p.text)
	if len(fields) != order+1 && len(fields) != order+2 {
		return g, nil, p.expected("a probability, %d words and perhaps a back-off weight", order)
	}
	numbers := [2]float64{}
	for k, s := range append(fields[:1:1], fields[order+1:]...) {
		// Beyond ± 99, which stands for a probability of 0, nothing is sensible.
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !(math.Abs(x) <= 100) || k == 0 && x > 0 {
			return g, nil, p.expected("the log10 of a probability and of a back-off weight, not %q", s)
		}
		numbers[k] = x * math.Ln10
	}
	g.logProb, g.backoff = float32(numbers[0]), float32(numbers[1])
	words = fields[1 : order+1]
	for k, w := range words {
		words[k] = strings.ToLower(w)
	}
	return g, words, nil
}

func (p *reader) unigrams(m *Model, count int) ([]gram, error) {
	found := map[string]gram{}
	for i := range count {
		g, words, err := p.entry(1, count, i)
		if err != nil {
			return nil, err
		}
		if old, ok := found[words[0]]; !ok || g.logProb > old.logProb {
			found[words[0]] = g
		}
	}
	for w := range found {
		m.words = append(m.words, w)
	}
	sort.Strings(m.words)
	grams := make([]gram, len(m.words))
	for i, w := range m.words {
		grams[i] = found[w]
		grams[i].word = int32(i)
		switch w {
		case sentenceStart:
			m.start = int32(len(m.word) + i)
		case sentenceEnd:
			m.end = int32(i)
		case unknownWord:
		default:
			m.unknown = min(m.unknown, float64(grams[i].logProb))
		}
	}
	if g, ok := found[unknownWord]; ok {
		m.unknown = float64(g.logProb)
	}
	return grams, nil
}

func (p *reader) longer(m *Model, order, count int) ([]gram, error) {
	var grams []gram
	for i := range count {
		g, words, err := p.entry(order, count, i)
		if err != nil {
			return nil, err
		}
		for k, w := range words {
			n, ok := slices.BinarySearch(m.words, w)
			if !ok {
				return nil, p.expected("words of the 1-grams, not %q", w)
			}
			if k > 0 {
				if g.parent, ok = m.child(g.parent, g.word); !ok {
					return nil, p.expected("an n-gram whose beginning %q is one of the shorter ones", strings.Join(words[:k], " "))
				}
			}
			g.word = int32(n)
		}
		grams = append(grams, g)
	}
	slices.SortFunc(grams, func(a, b gram) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.word, b.word), cmp.Compare(b.logProb, a.logProb), cmp.Compare(b.backoff, a.backoff))
	})
	return slices.CompactFunc(grams, func(a, b gram) bool { return a.parent == b.parent && a.word == b.word }), nil
}
