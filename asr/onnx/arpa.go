package onnx

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxOrder is the longest n-gram accepted: KenLM's default limit.
	maxOrder = 6
	// maxARPALine bounds a line, in bytes.
	maxARPALine = 64 << 10
	// maxNGrams bounds a model's memory; an n-gram takes 20 bytes.
	maxNGrams = 100 << 20
)

const (
	sentenceStart = "<s>"
	sentenceEnd   = "</s>"
	unknownWord   = "<unk>"
)

// parseARPA reads a language model in the ARPA format, which SRILM, KenLM and
// others write: \data\, the number of n-grams of each length; for each length N
// a line \N-grams: and lines of log10 probability, N words and, where it is not
// 0, log10 back-off weight; \end\. Words are lower-cased; n-grams that differ
// by case become one, with the greater probability. Errors begin with name
// and contain the line, the expected and the actual text.
func parseARPA(name string, data []byte) (*wordModel, error) {
	p := &arpaReader{rest: string(data)}
	m, err := p.model()
	if p.tooLong {
		err = fmt.Errorf("line %d: more than %d bytes long", p.line+1, maxARPALine)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: no language model in the ARPA format: %w", name, err)
	}
	return m, nil
}

// gram is an n-gram being parsed: its last word and the node before it.
type gram struct {
	parent, word     int32
	logProb, backoff float32
}

// arpaReader iterates over the lines of a file.
type arpaReader struct {
	rest    string // the file after the present line
	line    int
	text    string // the present line without spaces around it
	tooLong bool   // the next line exceeds maxARPALine
	fields  []string
	number  map[string]int32 // each word's place among the 1-grams
	last    arpaPath
}

// arpaPath is the path of the previous n-gram through the trie. Files list n-grams
// with the same beginning together, so most lookups can be skipped.
type arpaPath struct {
	words []string
	ids   []int32 // of the words
	nodes []int32 // the nodes of the n-grams that the words begin
}

// next moves to the next line that is not blank.
func (p *arpaReader) next() bool {
	for p.rest != "" {
		line, rest, _ := strings.Cut(p.rest, "\n")
		if len(line) >= maxARPALine {
			p.tooLong = true
			break
		}
		p.rest = rest
		p.line++
		if p.text = strings.TrimSpace(line); p.text != "" {
			return true
		}
	}
	p.text = "the end of the file"
	return false
}

func (p *arpaReader) expected(format string, a ...any) error {
	return fmt.Errorf("line %d: expected %s, found %.80q", p.line, fmt.Sprintf(format, a...), p.text)
}

func (p *arpaReader) model() (*wordModel, error) {
	for p.text != `\data\` { // a comment may precede the data
		if !p.next() {
			return nil, p.expected(`\data\, with which a language model in the ARPA format begins`)
		}
	}
	counts, err := p.counts()
	if err != nil {
		return nil, err
	}
	m := &wordModel{end: -1}
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

// counts reads the number of n-grams of each length.
func (p *arpaReader) counts() ([]int, error) {
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
func (p *arpaReader) entry(order, count, i int) (g gram, words []string, err error) {
	if !p.next() || p.text[0] == '\\' {
		return g, nil, p.expected("n-gram %d of the %d with %d words", i+1, count, order)
	}
	fields := slices.AppendSeq(p.fields[:0], strings.FieldsSeq(p.text))
	p.fields = fields
	if len(fields) != order+1 && len(fields) != order+2 {
		return g, nil, p.expected("a probability, %d words and perhaps a back-off weight", order)
	}
	numbers := [2]float64{}
	for k, at := range []int{0, order + 1} {
		if at == len(fields) {
			break
		}
		// -99 stands for a probability of 0, so larger magnitudes are errors.
		x, err := strconv.ParseFloat(fields[at], 64)
		if err != nil || !(math.Abs(x) <= 100) || k == 0 && x > 0 {
			return g, nil, p.expected("the log10 of a probability and of a back-off weight, not %q", fields[at])
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

func (p *arpaReader) unigrams(m *wordModel, count int) ([]gram, error) {
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
		m.words = append(m.words, strings.Clone(w)) // a clone does not keep the whole file in memory
	}
	slices.Sort(m.words)
	grams := make([]gram, len(m.words))
	p.number = make(map[string]int32, len(m.words))
	for i, w := range m.words {
		p.number[w] = int32(i)
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

func (p *arpaReader) longer(m *wordModel, order, count int) ([]gram, error) {
	var grams []gram
	p.last = arpaPath{}
	for i := range count {
		g, words, err := p.entry(order, count, i)
		if err != nil {
			return nil, err
		}
		if err := p.follow(m, words); err != nil {
			return nil, err
		}
		g.parent, g.word = p.last.nodes[order-2], p.last.ids[order-1]
		grams = append(grams, g)
	}
	slices.SortFunc(grams, func(a, b gram) int {
		switch {
		case a.parent != b.parent:
			return int(a.parent - b.parent)
		case a.word != b.word:
			return int(a.word - b.word)
		}
		return cmp.Or(cmp.Compare(b.logProb, a.logProb), cmp.Compare(b.backoff, a.backoff))
	})
	return slices.CompactFunc(grams, func(a, b gram) bool { return a.parent == b.parent && a.word == b.word }), nil
}

// follow moves p.last to the words: their numbers and their prefixes' nodes.
func (p *arpaReader) follow(m *wordModel, words []string) error {
	same := 0
	for same < len(p.last.words) && p.last.words[same] == words[same] {
		same++
	}
	l := &p.last
	l.ids, l.nodes = l.ids[:same], l.nodes[:min(same, len(l.nodes))]
	for k, w := range words[same:] {
		k += same
		id, ok := p.number[w]
		if !ok {
			return p.expected("words of the 1-grams, not %q", w)
		}
		l.ids = append(l.ids, id)
		if k == len(words)-1 {
			break
		}
		node := int32(0)
		if k > 0 {
			node = l.nodes[k-1]
		}
		if node, ok = m.child(node, id); !ok {
			return p.expected("an n-gram whose beginning %q is one of the shorter ones", strings.Join(words[:k+1], " "))
		}
		l.nodes = append(l.nodes, node)
	}
	l.words = append(l.words[:0], words...)
	return nil
}
