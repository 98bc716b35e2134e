package whisper

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/texts"
	"github.com/otograph/otograph/internal/engine/whispernet"
)

// Whisper spells names it does not know phonetically. After a window's text is
// decided, words spelled nearly like a hotword are replaced with the hotword,
// unless the model finds the changed text much less likely.
const (
	// nameLetters is the least number of letters in a name; nameLikeness is the
	// least share of letters that must match.
	nameLetters, nameLikeness = 5, 0.6
	// nameCost limits how much less likely (natural logarithm) the text may
	// become if the model wrote words of one token each, which it knows.
	// nameCostPieced is for words of several tokens, or another spelling.
	nameCost, nameCostPieced = 6.0, 18.0
	// nameContext is the number of tokens after the name that count.
	nameContext = 6
)

// name is a hotword to look for in decoded texts, or a run of words in one.
type name struct {
	text    string
	letters []rune
}

// namesOf returns the hotwords to look for. short lists those with too few
// letters to tell apart, unspelled those that the vocabulary cannot spell.
func namesOf(hotwords []string, v vocabulary) (list []name, short, unspelled []string) {
	for _, word := range hotwords {
		n := name{text: strings.Join(strings.Fields(word), " ")}
		n.letters = lettersOf(n.text)
		switch {
		case n.text == "":
		case spell(v, n.text) == nil && spell(v, " "+n.text) == nil:
			unspelled = append(unspelled, word)
		case len(n.letters) < nameLetters:
			short = append(short, word)
		default:
			list = append(list, n)
		}
	}
	return list, short, unspelled
}

// words returns the longest run of words that the name may replace.
func (n name) words() int { return strings.Count(n.text, " ") + 2 }

// lettersOf returns a text's letters and digits, lower-cased, unaccented.
func lettersOf(text string) []rune {
	return slices.DeleteFunc([]rune(strings.ToLower(norm.NFKD.String(text))), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// likeness returns the share of letters in common, by edit distance.
func likeness(a, b []rune) float64 {
	return 1 - float64(texts.EditDistance(a, b))/float64(max(len(a), len(b), 1))
}

// sighting is a run of words that a name may replace.
type sighting struct {
	first, last int // text tokens
	pieced      bool
	text        string
	likeness    float64
}

// cost returns how much less likely a text may become with the name.
func (s sighting) cost() float64 {
	if s.pieced || s.likeness == 1 {
		return nameCostPieced
	}
	return nameCost
}

// sightings returns the places in a text where a name may belong, the most
// similar first, without overlap.
func sightings(words []decode.Word, names []name) (list []sighting) {
	longest := 0
	for _, n := range names {
		longest = max(longest, n.words())
	}
	runs := make([][]name, len(words)) // by first word, then by length
	for i := range words {
		text := ""
		for _, w := range words[i:min(i+longest, len(words))] {
			text += w.Text
			runs[i] = append(runs[i], name{text, lettersOf(text)})
		}
	}
	for _, n := range names {
		for i := range words {
			for k, run := range runs[i][:min(n.words(), len(runs[i]))] {
				if l := likeness(run.letters, n.letters); l >= nameLikeness && !strings.Contains(run.text, n.text) {
					list = append(list, sighting{words[i].First, words[i+k].Last, pieced(words[i : i+k+1]), n.text, l})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b sighting) int { return cmp.Compare(b.likeness, a.likeness) })
	var kept []sighting
	for _, s := range list {
		if !slices.ContainsFunc(kept, func(k sighting) bool { return s.first <= k.last && k.first <= s.last }) {
			kept = append(kept, s)
		}
	}
	return kept
}

// pieced reports whether a word has several tokens, as unknown words have.
func pieced(words []decode.Word) bool {
	return slices.ContainsFunc(words, func(w decode.Word) bool { return w.Last > w.First })
}

// name replaces misspelled names in the decided text of a job.
func (w *worker) name(o *opened) error {
	f := o.job.plan.text()
	if len(o.search.names) == 0 || f == nil || len(f.tokens) == 0 || f.failed() {
		return nil
	}
	var pieces []decode.Token
	var at []int // indexes of the text tokens
	for i, t := range f.tokens {
		if t.id < w.cpu.EOT {
			pieces, at = append(pieces, decode.Token{Text: w.cpu.Text(t.id)}), append(at, i)
		}
	}
	list := sightings(decode.Words(pieces), o.search.names)
	slices.SortFunc(list, func(a, b sighting) int { return cmp.Compare(b.first, a.first) }) // from the end, so that indexes stay valid
	for _, s := range list {
		tokens, err := w.withName(o, f.tokens, at[s.first], at[s.last]+1, s)
		if err != nil {
			return err
		}
		if tokens != nil {
			temperature := f.temperature
			f.attempt = assess(w.cpu, tokens, false)
			f.temperature = temperature
		}
	}
	return nil
}

// withName returns a text with a name in place of some tokens; nil if that is
// too unlikely, cannot be spelled, or gets too long for the model.
func (w *worker) withName(o *opened, text []token, from, to int, s sighting) ([]token, error) {
	var old strings.Builder
	for _, t := range text[from:to] {
		old.WriteString(w.cpu.Text(t.id))
	}
	spelled := spell(w.cpu, replaced(old.String(), s.text))
	if spelled == nil {
		return nil, nil
	}
	with := slices.Clone(text[:from])
	for _, id := range spelled {
		with = append(with, token{id: id})
	}
	end := len(with)
	with = append(with, text[to:]...)
	const endAndTask = 2 // tokens that time adds to the prompt and the text
	if len(o.search.prompt)+len(with)+endAndTask > w.cpu.context {
		return nil, nil
	}
	before, err := w.likelihood(o, slices.Clone(text), from, to)
	if err != nil {
		return nil, err
	}
	after, err := w.likelihood(o, with, from, end)
	if err != nil || before-after > s.cost() {
		return nil, err
	}
	return with, nil
}

// replaced returns old with its first to last letter replaced by with.
func replaced(old, with string) string {
	solid := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
	from := strings.IndexFunc(old, solid)
	to := strings.LastIndexFunc(old, solid)
	for to++; to < len(old) && old[to]&0xc0 == 0x80; to++ { // the remaining bytes of the last letter
	}
	return old[:from] + with + old[to:]
}

// likelihood sets the log probabilities of a text's tokens from one index to
// nameContext tokens after end, and returns their sum.
func (w *worker) likelihood(o *opened, text []token, from, end int) (sum float64, err error) {
	prompt := len(o.search.prompt)
	until := min(end+nameContext, len(text))
	logits := o.search.buffers(until-from+1, w.cpu.size)
	var columns []whispernet.Column
	for i, t := range o.search.prompt {
		columns = append(columns, whispernet.Column{Window: o.window, Position: i, Token: t})
	}
	for i, t := range text[:until] {
		columns = append(columns, whispernet.Column{Window: o.window, Position: prompt + i, Token: t.id})
	}
	for i := from; i <= until; i++ {
		columns[prompt+i-1].Logits = logits[i-from]
	}
	o.window.Forget()
	if err := w.decoder.Step(columns, w.stop); err != nil {
		return 0, failure(err)
	}
	for i := from; i <= until; i++ {
		whispernet.Normalize(logits[i-from], w.cpu.Begin)
		next := w.cpu.EOT
		if i < len(text) {
			next = text[i].id
		}
		p := logits[i-from][next]
		if i < len(text) {
			text[i].logp = p
		}
		sum += float64(p)
	}
	return sum, nil
}
