package whisper

import (
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/whispernet"
)

// rules define which token may come next: Whisper's published rules.
type rules struct {
	blank, eot, begin int32   // " " (negative if the model has none), the end, the mark of 0.00 s
	never             []int32 // tokens that are never written: symbols that are not spoken
	unmarked          bool    // texts are written without time marks
}

// firstMark is the latest time mark that may open a text: 1.0 s.
const firstMark = 50

// newRules derives the rules from a model. Published models write better text
// without time marks (docs/measurements/standard-tier.md), so models whose words
// are timed by alignment heads write none.
func newRules(m *whispernet.Model, timed bool) *rules {
	v := m.Vocabulary()
	r := &rules{blank: -1, eot: v.EOT, begin: v.Begin, unmarked: timed || unmarked(m.Header())}
	if one := v.Tokenize(" "); len(one) == 1 && v.Text(one[0]) == " " {
		r.blank = one[0]
	}
	r.never = unspoken(func(text string) []int32 { return spell(v, text) })
	for t := range v.EOT { // most special tokens are in the published list
		if strings.ContainsAny(v.Text(t), "[♩♪♫♬") {
			r.never = append(r.never, t)
		}
	}
	return r
}

// unspoken lists the tokens of symbols that stand for no sound, as OpenAI's
// suppress_tokens -1 does. spell returns a text's tokens, nil if it cannot.
// Hyphens and apostrophes may not begin a word.
func unspoken(spell func(string) []int32) []int32 {
	symbols := strings.Split(`"#()*+/:;<=>@[\]^_`+"`"+`{|}~「」『』`, "")
	symbols = append(symbols, strings.Fields(`<< >> <<< >>> -- --- -( -[ (' (" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪`)...)
	var list []int32
	add := func(text string, partly bool) {
		if tokens := spell(text); len(tokens) == 1 || len(tokens) > 1 && partly {
			list = append(list, tokens[0])
		}
	}
	add(" -", false)
	add(" '", false)
	for _, s := range symbols {
		add(s, false)
		add(" "+s, false)
	}
	for _, s := range "♩♪♫♬♭♮♯" { // only such symbols have their first bytes
		add(string(s), true)
		for _, t := range spell(" " + string(s)) {
			if blank := spell(" "); len(blank) != 1 || t != blank[0] {
				list = append(list, t)
				break
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// forbid sets the logits of the tokens that may not follow a text to minus
// infinity. The rules that need probabilities are in settle.
func (r *rules) forbid(logits []float32, text []int32) {
	for _, t := range r.never {
		logits[t] = forbidden
	}
	forbid(logits[r.eot+1 : r.begin])
	if len(text) == 0 {
		logits[r.eot] = forbidden
		if r.blank >= 0 {
			logits[r.blank] = forbidden
		}
	}
	if r.unmarked {
		forbid(logits[r.begin:])
		return
	}
	r.order(logits, text)
}

// order applies the rules of time marks: a text begins with a mark of its first
// second, marks come in pairs except before the end, none is earlier than the
// previous one, and every passage has a length.
func (r *rules) order(logits []float32, text []int32) {
	n := len(text)
	if n == 0 {
		forbid(logits[:r.begin])
		forbid(logits[min(int(r.begin)+firstMark+1, len(logits)):])
		return
	}
	last := text[n-1] >= r.begin
	closed := n < 2 || text[n-2] >= r.begin // whether the last token, if it is a mark, opens a passage
	switch {
	case last && closed:
		forbid(logits[r.begin:])
		return
	case last:
		forbid(logits[:r.eot])
	}
	for i := n - 1; i >= 0; i-- {
		if text[i] >= r.begin {
			from := text[i] + 1
			if last {
				from = text[i]
			}
			forbid(logits[r.begin:min(int(from), len(logits))])
			return
		}
	}
}

// settle turns logits into log probabilities. If all time marks together are
// more likely than any other token, the next token must be a time mark.
func (r *rules) settle(logits []float32) {
	marks, best := whispernet.Normalize(logits, r.begin)
	if r.unmarked || !(marks > best) {
		return
	}
	forbid(logits[:r.begin])
	for i := r.begin; int(i) < len(logits); i++ {
		logits[i] -= marks
	}
}

// forbidden is the log probability of a forbidden token.
var forbidden = float32(math.Inf(-1))

// forbid forbids the tokens of the log probabilities.
func forbid(logProbs []float32) {
	for i := range logProbs {
		logProbs[i] = forbidden
	}
}
