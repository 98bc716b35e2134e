package onnx

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// lmWeight is the model's share in a search, and wordBonus is added per word
	// to offset the model's preference for few words (natural logarithms). Of a
	// dozen pairs, these make the fewest errors on the clips that the
	// demonstration recognizer was selected by
	// (docs/measurements/language-model.md).
	lmWeight  = 0.35
	wordBonus = 2.0
)

// wordScorer adds a wordModel's score of a text to a search over tokens (shallow
// fusion; Hannun and others 2014, First-pass large vocabulary continuous speech
// recognition using bi-directional recurrent DNNs): lmWeight·ln P(word | words
// before) and a bonus for each word. It is safe for concurrent use. A nil
// wordScorer scores nothing.
type wordScorer struct {
	model *wordModel
	// text is each token's text, lower-cased; ' ' ends words, '\n' sentences.
	text [][]byte
	// spared are the words that the model never penalizes, sorted.
	spared []string
}

// newWordScorer prepares a model for a recognizer's tokens. tokens holds the UTF-8
// text of each, nil for none; one token need not be whole characters. Words are
// separated by spaces and punctuation other than apostrophes and hyphens,
// ignoring case. Each kana or Chinese character is a word. A full stop, a
// question mark or an exclamation mark ends a sentence.
func newWordScorer(m *wordModel, tokens [][]byte) *wordScorer {
	s := &wordScorer{model: m, text: make([][]byte, len(tokens))}
	for id, t := range tokens {
		for len(t) > 0 {
			r, n := utf8.DecodeRune(t)
			if r == utf8.RuneError { // an incomplete character
				s.text[id] = append(s.text[id], t[:n]...)
			} else {
				s.text[id] = utf8.AppendRune(s.text[id], plain(r))
			}
			t = t[n:]
		}
	}
	return s
}

// plain maps a token's character to one of the wordScorer's text.
func plain(r rune) rune {
	switch {
	case r == '\'' || r == '-' || unicode.In(r, unicode.L, unicode.N, unicode.M):
		return unicode.ToLower(r)
	case r == '’':
		return '\''
	case strings.ContainsRune(".?!。？！", r):
		return '\n'
	}
	return ' '
}

// sparing returns a wordScorer that never penalizes the words of the given phrases
// (such as hotwords), however unlikely or unknown they are to the model.
func (s *wordScorer) sparing(phrases []string) *wordScorer {
	if s == nil {
		return nil
	}
	sparing := *s
	sparing.spared = nil
	for _, p := range phrases {
		sparing.spared = append(sparing.spared, strings.Fields(strings.Map(plain, p))...)
	}
	slices.Sort(sparing.spared)
	return &sparing
}

// wordPlace is the state of a partial text in the model.
type wordPlace struct {
	context int32
	// known and spared are the ranges [0] to [1] of the words, in the model and
	// among the spared, that begin with the unfinished word.
	known, spared [2]int32
	bytes         int32
	// whole is the present character's bytes in an unspaced script.
	whole int32
	// score is the score of the complete words.
	score float64
}

// begin returns the place before a text.
func (s *wordScorer) begin() wordPlace {
	if s == nil {
		return wordPlace{}
	}
	return s.fresh(wordPlace{context: s.model.start})
}

// fresh returns the place before a word.
func (s *wordScorer) fresh(p wordPlace) wordPlace {
	p.known, p.spared = [2]int32{0, int32(len(s.model.words))}, [2]int32{0, int32(len(s.spared))}
	p.bytes, p.whole = 0, 0
	return p
}

// step returns the place after another token.
func (s *wordScorer) step(p wordPlace, token int) wordPlace {
	if s == nil || token >= len(s.text) {
		return p
	}
	for _, c := range s.text[token] {
		switch {
		case c == ' ':
			p = s.complete(p)
		case c == '\n':
			p = s.closed(s.complete(p))
		case p.bytes == 0 && (c == '-' || c == '\''): // a dash or a quotation mark
		default:
			if unspaced := c >= 0xe3 && c <= 0xe9 || c >= 0xf0; unspaced { // kana and Chinese characters
				p = s.complete(p)
				p.whole = 3
				if c >= 0xf0 {
					p.whole = 4
				}
			}
			p.known, p.spared = narrow(s.model.words, p.known, p.bytes, c), narrow(s.spared, p.spared, p.bytes, c)
			if p.bytes++; p.bytes == p.whole {
				p = s.complete(p)
			}
		}
	}
	return p
}

// narrow returns the range within r of the words whose byte at index at is c.
func narrow(words []string, r [2]int32, at int32, c byte) [2]int32 {
	words = words[r[0]:r[1]]
	reaches := func(c int) int32 {
		return r[0] + int32(sort.Search(len(words), func(i int) bool { return int32(len(words[i])) > at && int(words[i][at]) >= c }))
	}
	return [2]int32{reaches(int(c)), reaches(int(c) + 1)}
}

// complete scores the unfinished word, if there is one.
func (s *wordScorer) complete(p wordPlace) wordPlace {
	if p.bytes == 0 {
		return p
	}
	is := func(words []string, r [2]int32) bool { return r[0] < r[1] && int32(len(words[r[0]])) == p.bytes }
	logProb, context := s.model.unknown, int32(0)
	if is(s.model.words, p.known) {
		logProb, context = s.model.next(p.context, p.known[0])
	}
	score := lmWeight*logProb + wordBonus
	if is(s.spared, p.spared) {
		score = max(score, 0)
	}
	p.score += score
	p.context = context
	return s.fresh(p)
}

// closed scores the end of a sentence and begins the next one.
func (s *wordScorer) closed(p wordPlace) wordPlace {
	if p.context == s.model.start {
		return p
	}
	if s.model.end >= 0 {
		logProb, _ := s.model.next(p.context, s.model.end)
		p.score += lmWeight * logProb
	}
	p.context = s.model.start
	return p
}

// score returns the score of a text so far. Of an unfinished word, only whether
// it can become a word of the model matters.
func (s *wordScorer) score(p wordPlace) float64 {
	if s != nil && p.bytes > 0 && p.known[0] == p.known[1] && p.spared[0] == p.spared[1] {
		return p.score + lmWeight*s.model.unknown + wordBonus
	}
	return p.score
}

// finish returns the score of a text that ends here.
func (s *wordScorer) finish(p wordPlace) float64 {
	if s == nil {
		return 0
	}
	return s.complete(p).score
}
