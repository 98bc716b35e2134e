package decode

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Token is a piece of text from a recognizer. Its bytes need not be whole
// characters, and words begin with a space.
type Token struct {
	Text                 string
	Probability, LogProb float64
	// NoSpeech is the probability that the token's place has no speech.
	NoSpeech float64
	// Time is the token's time in the file (seconds); NaN if unknown.
	Time float64
	// Seek is the start of the token's window in the file (seconds).
	Seek float64
	// ID is the token's number in the recognizer's vocabulary.
	ID int32
}

// Word is a word of a transcript before it becomes part of a segment. Its Text
// has the spaces before it. Its Tokens are those of the word and its
// punctuation, without a token shared with the word before.
type Word struct {
	asr.Word
	// LogProb is the sum over the Tokens tokens.
	LogProb float64
	// NoSpeechProb is the mean over the word's tokens, or the window's.
	NoSpeechProb float64
	// IDs are the numbers of the Tokens tokens in the recognizer's vocabulary.
	IDs []int32
	// Temperature is the decoding temperature of the word's window, and Seek
	// the window's start in the file (seconds).
	Temperature, Seek float64
	// First and Last are the tokens in which the word's letters begin and end,
	// as indices into Words' argument, without separate punctuation.
	First, Last int
	// Language is the code of the language that the window was decoded in.
	Language string
}

// Words joins tokens to words. A word begins at a space, and at each character
// of a script without spaces. Punctuation and combining marks stay with the
// word before, an opening bracket or quotation mark with the next. Invalid
// UTF-8 and marks of direction are dropped. Start is the first token's Time; End is
// not set.
func Words(tokens []Token) []Word {
	j := joiner{tokens: tokens, counted: -1}
	var stream []byte
	for i, t := range tokens {
		stream = append(stream, t.Text...)
		for range len(t.Text) {
			j.owner = append(j.owner, i)
		}
	}
	for j.at < len(stream) {
		r, size := utf8.DecodeRune(stream[j.at:])
		if r == utf8.RuneError && size <= 1 || unicode.Is(unicode.Bidi_Control, r) {
			j.at += size
			continue
		}
		if unicode.IsSpace(r) {
			r = ' '
		}
		if j.ends(r) {
			j.flush()
		}
		j.add(r, size)
	}
	j.flush()
	return j.words
}

// joiner builds words from the characters of tokens.
type joiner struct {
	tokens []Token
	owner  []int // per byte, the index of its token
	at     int   // index of the next byte

	words   []Word
	counted int // the last token whose LogProb was added to a word

	text        []rune // text of the unfinished word
	from, until int    // bytes of its letters and digits
	solid       bool   // text contains a letter or digit
	open        bool   // text ends in an opening mark, which belongs to the next character
}

// ends reports whether the unfinished word ends before r.
func (j *joiner) ends(r rune) bool {
	switch {
	case r == ' ':
		return len(j.text) > 0 && !j.open
	case unicode.Is(unicode.M, r):
		return false
	case spec.Unspaced(r):
		return j.solid && !j.open
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return j.solid && !j.open && spec.Unspaced(j.text[len(j.text)-1])
	}
	return opens(r) && j.solid && spec.Unspaced(lastSolid(j.text))
}

func (j *joiner) add(r rune, size int) {
	if solid(r) {
		if !j.solid {
			j.from = j.at
			if unicode.IsLetter(r) && j.speaks() {
				j.text = append(j.text[:0], ' ')
			}
		}
		j.solid, j.until = true, j.at+size
	}
	j.open = opens(r)
	j.text = append(j.text, r)
	j.at += size
}

// flush ends the unfinished word. Spaces and punctuation alone are not a word:
// they belong to the word before, or to the first word. The dash before a new
// speaker belongs to no word.
func (j *joiner) flush() {
	if !j.solid {
		switch n := len(j.words); {
		case j.speaks():
			j.text = j.text[:0]
		case n > 0:
			j.words[n-1].Text += string(j.text)
			j.text = j.text[:0]
		}
		return
	}
	first, last := j.owner[j.from], j.owner[j.until-1]
	w := Word{Word: asr.Word{Text: string(j.text), Start: j.tokens[first].Time}, Seek: j.tokens[first].Seek, First: first, Last: last}
	for _, t := range j.tokens[first : last+1] {
		w.Probability += t.Probability
		w.NoSpeechProb += t.NoSpeech
	}
	w.Probability /= float64(last + 1 - first)
	w.NoSpeechProb /= float64(last + 1 - first)
	for ; j.counted < j.owner[j.at-1]; j.counted++ { // including spaces and punctuation
		t := j.tokens[j.counted+1]
		w.LogProb += t.LogProb
		w.IDs = append(w.IDs, t.ID)
		w.Tokens++
	}
	j.words = append(j.words, w)
	j.text, j.solid, j.open = j.text[:0], false, false
}

// speaks reports whether the unfinished word's text is the dash before a new
// speaker: at the beginning, or after punctuation.
func (j *joiner) speaks() bool {
	if n := len(j.words); n > 0 && !endsClause(j.words[n-1].Text) {
		return false
	}
	dash := strings.TrimSpace(string(j.text))
	return dash != "" && strings.Trim(dash, "-–—―‐") == ""
}

// opens reports whether r is an opening bracket or quotation mark.
func opens(r rune) bool { return unicode.In(r, unicode.Ps, unicode.Pi) }

// solid reports whether r is spoken: a letter, a digit or a sign read aloud.
func solid(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '&' || !unicode.In(r, unicode.P, unicode.Z, unicode.M, unicode.C) && r != ' '
}

// lastSolid returns the last letter or digit of a text, 0 without one.
func lastSolid(text []rune) rune {
	for i := len(text) - 1; i >= 0; i-- {
		if unicode.IsLetter(text[i]) || unicode.IsDigit(text[i]) {
			return text[i]
		}
	}
	return 0
}

// weight returns a word's spoken length in letters.
func weight(text string) float64 {
	var w float64
	for _, r := range text {
		switch {
		case unicode.IsDigit(r), spec.Unspaced(r):
			w += 3 // "7" is a whole word
		case unicode.IsLetter(r):
			w++
		case !unicode.In(r, unicode.P, unicode.Z, unicode.M):
			w += 3 // "%", "+", "€"
		}
	}
	return max(w, 1) + 0.5
}

// weights returns the spoken length of the first 0, 1, … words, in letters.
func weights(words []Word) []float64 {
	sum := make([]float64, len(words)+1)
	for i, w := range words {
		sum[i+1] = sum[i] + weight(w.Text)
	}
	return sum
}

// gapAnchor is the shortest silence (seconds) that must separate two words.
const gapAnchor = 0.1

// sliver is the shortest speech (seconds) at the beginning or end of a passage
// that may contain a separate word. A recognizer's time marks can lie up to 0.1
// s inside of the speech beyond a pause, which does not belong to the passage.
const sliver = 0.15

// stretch is speech without a silence of gapAnchor: its range in the file, and
// its start in the time that only counts speech; all in seconds.
type stretch struct{ start, end, at float64 }

// stretches returns the speech between two times of the file and its length,
// without slivers of other speech at the ends, unless there is nothing else.
func stretches(from, to float64, speech []audio.Span) (spans []stretch, total float64) {
	var cutFirst, cutLast bool
	for _, s := range speech {
		start, end := s.Seconds()
		a, b := max(start, from), min(end, to)
		if b <= a {
			continue
		}
		cutLast = end > to
		if k := len(spans) - 1; k >= 0 && a-spans[k].end < gapAnchor {
			spans[k].end = b
			total = spans[k].at + b - spans[k].start
			continue
		}
		if len(spans) == 0 {
			cutFirst = start < from
		}
		spans = append(spans, stretch{a, b, total})
		total += b - a
	}
	if n := len(spans); cutLast && n > 1 && spans[n-1].end-spans[n-1].start < sliver {
		spans, total = spans[:n-1], spans[n-1].at
	}
	if cutFirst && len(spans) > 1 && spans[0].end-spans[0].start < sliver {
		spans = spans[1:]
		first := spans[0].at
		for i := range spans {
			spans[i].at -= first
		}
		total -= first
	}
	return spans, total
}

// Align assigns times to words between two times of the file (seconds). It
// distributes them over the speech between in proportion to their letters, and
// places each silence of at least 100 ms at the nearest word border, preferably
// one at punctuation. Without speech, the words share the whole time.
func Align(words []Word, from, to float64, speech []audio.Span) {
	if len(words) == 0 {
		return
	}
	to = max(to, from)
	spans, total := stretches(from, to, speech)
	if len(spans) == 0 {
		spans, total = []stretch{{from, to, 0}}, to-from
	}
	n := len(words)
	sum := weights(words)
	// border[i] is the time before word i; fast marks times next to a silence.
	border, fast := make([]float64, n+1), make([]bool, n+1)
	for i := range border {
		border[i] = total * sum[i] / sum[n]
	}
	fast[0], fast[n] = true, true
	low := 1
	for _, s := range spans[1:] {
		best, found := math.Inf(1), -1
		for i := low; i < n; i++ {
			d := math.Abs(border[i] - s.at)
			if endsClause(words[i-1].Text) {
				d -= 0.25
			}
			if d < best {
				best, found = d, i
			}
		}
		if found < 0 {
			break
		}
		border[found], fast[found] = s.at, true
		low = found + 1
	}
	for i := 0; i < n; {
		j := i + 1
		for !fast[j] {
			j++
		}
		for k := i + 1; k < j; k++ {
			border[k] = border[i] + (border[j]-border[i])*(sum[k]-sum[i])/(sum[j]-sum[i])
		}
		i = j
	}
	file := func(t float64, end bool) float64 {
		for k := len(spans) - 1; k > 0; k-- {
			if t > spans[k].at || (t == spans[k].at && !end) {
				return min(spans[k].start+t-spans[k].at, spans[k].end)
			}
		}
		return min(spans[0].start+t, spans[0].end)
	}
	for i := range words {
		words[i].Start, words[i].End = file(border[i], false), file(border[i+1], true)
	}
}

func endsClause(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(unclosed(text))
	return unicode.Is(unicode.P, r)
}

// unclosed returns a text without the closing marks at its end.
func unclosed(text string) string {
	return strings.TrimRightFunc(text, func(r rune) bool { return unicode.In(r, unicode.Pe, unicode.Pf) || r == '"' || r == '\'' })
}

// shortest is the minimum length of a word in seconds.
const shortest = 0.01

// Settle corrects the times of words so that every word begins and ends within
// speech (samples of the file, in order), no word begins before the previous
// one ends, and each lasts at least 10 ms if the speech has room for that.
func Settle(words []Word, speech []audio.Span) {
	list := make([]*asr.Word, len(words))
	for i := range words {
		list[i] = &words[i].Word
	}
	SettleWords(list, speech)
}

// SettleWords is Settle for the words of a transcript.
func SettleWords(words []*asr.Word, speech []audio.Span) {
	if len(words) == 0 || len(speech) == 0 {
		return
	}
	k := 0
	var before float64
	span := func() (float64, float64) { return speech[k].Seconds() }
	for _, w := range words {
		s := max(w.Start, before)
		for k < len(speech)-1 {
			if _, b := span(); s < b-shortest+1e-9 {
				break
			}
			k++
		}
		a, b := span()
		s = max(s, a)
		e := max(w.End, s+shortest)
		if e > b { // the end may lie in a later stretch, but not in the silence before it
			end := b
			for j := k + 1; j < len(speech); j++ {
				c, d := speech[j].Seconds()
				if e <= c+shortest {
					break
				}
				end = min(e, d)
			}
			e = max(end, s+shortest)
		}
		w.Start, w.End, before = s, e, e
	}
	_, last := speech[len(speech)-1].Seconds()
	for i := len(words) - 1; i >= 0; i-- { // words beyond the last speech move back
		w := words[i]
		if w.End <= last+1e-9 {
			break
		}
		w.End = last
		w.Start = min(w.Start, last-shortest)
		last = w.Start
	}
}
