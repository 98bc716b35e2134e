package scores

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The words of numbers.
var (
	ones = []string{
		"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
		"fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
	}
	tens      = []string{"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	thousands = []string{"thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion", "octillion", "nonillion", "decillion"}
	signs     = map[string]string{"minus": "-", "negative": "-", "plus": "+", "positive": "+"}
	units     = map[string]string{"pound": "£", "pounds": "£", "euro": "€", "euros": "€", "dollar": "$", "dollars": "$", "cent": "¢", "cents": "¢"}
	prefixes  = "-+£€$¢"
)

// kind is the role of a word in a number.
type kind int

const (
	other kind = iota
	zero
	digit         // one to nineteen
	digitSuffixed // "first", "twos"
	ten
	tenSuffixed
	multiplier
	multiplierSuffixed
	sign
	unit
	percent
	special // and, double, triple, point
)

// numeral is a word that belongs to numbers.
type numeral struct {
	kind   kind
	value  *big.Int
	suffix string
}

var numerals = func() map[string]numeral {
	m := map[string]numeral{"zeroth": {digitSuffixed, big.NewInt(0), "th"}, "per": {kind: percent}, "percent": {kind: percent}}
	for _, w := range []string{"o", "oh", "zero"} {
		m[w] = numeral{kind: zero}
	}
	ordinals := map[string]string{"one": "first st", "two": "second nd", "three": "third rd", "five": "fifth th", "twelve": "twelfth th"}
	for i, w := range ones {
		v := big.NewInt(int64(i + 1))
		m[w] = numeral{digit, v, ""}
		plural := w + "s"
		if w == "six" {
			plural = "sixes"
		}
		m[plural] = numeral{digitSuffixed, v, "s"}
		ordinal, suffix, ok := strings.Cut(ordinals[w], " ")
		if !ok {
			ordinal, suffix = w+"th", "th"
			if strings.HasSuffix(w, "t") {
				ordinal = w + "h"
			}
		}
		m[ordinal] = numeral{digitSuffixed, v, suffix}
	}
	for i, w := range tens {
		v, stem := big.NewInt(int64(10*i+20)), strings.TrimSuffix(w, "y")
		m[w], m[stem+"ies"], m[stem+"ieth"] = numeral{ten, v, ""}, numeral{tenSuffixed, v, "s"}, numeral{tenSuffixed, v, "th"}
	}
	for i, w := range slices.Concat([]string{"hundred"}, thousands) {
		value := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(2, 3*i))), nil)
		m[w], m[w+"s"], m[w+"th"] = numeral{multiplier, value, ""}, numeral{multiplierSuffixed, value, "s"}, numeral{multiplierSuffixed, value, "th"}
	}
	for w := range signs {
		m[w] = numeral{kind: sign}
	}
	for w := range units {
		m[w] = numeral{kind: unit}
	}
	for _, w := range []string{"and", "double", "triple", "point"} {
		m[w] = numeral{kind: special}
	}
	return m
}()

var (
	half        = regexp.MustCompile(`and` + space + `+a` + space + `+half`)
	letterDigit = regexp.MustCompile(`([a-z])([0-9])`)
	digitLetter = regexp.MustCompile(`([0-9])([a-z])`)
	suffixes    = regexp.MustCompile(`([0-9])` + space + `+(st|nd|rd|th|s)`)
	numeric     = regexp.MustCompile(`^\p{Nd}+(\.\p{Nd}+)?$`)
	dollarCents = regexp.MustCompile(`([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})`)
	onlyCents   = regexp.MustCompile(`[€£$]0.([0-9]{1,2})`)
	oneOnly     = regexp.MustCompile(`1(s?)`)
)

func digits(s string) string {
	s = halves(s)
	if hasDigits(s) {
		s = letterDigit.ReplaceAllString(s, "$1 $2")
		s = digitLetter.ReplaceAllString(s, "$1 $2")
		s = replaceWords(s, suffixes, false, func(g []string) string { return g[1] + g[2] })
	}
	r := reader{words: fields(s)}
	r.read()
	s = strings.Join(r.out, " ")
	if !hasDigits(s) {
		return s
	}
	s = replaceWords(s, dollarCents, false, func(g []string) string {
		cents := g[3]
		if len(cents) == 1 {
			cents = "0" + cents
		}
		return g[1] + g[2] + "." + cents
	})
	s = replaceWords(s, onlyCents, false, func(g []string) string {
		if g[1] != "0" && g[1] != "00" {
			return "¢" + strings.TrimLeft(g[1], "0")
		}
		return "¢0"
	})
	return replaceWords(s, oneOnly, true, func(g []string) string { return "one" + g[1] })
}

// hasDigits reports whether a text has a digit. Without one, no pattern of
// digits can match.
func hasDigits(s string) bool { return strings.ContainsAny(s, "0123456789") }

// halves replaces "and a half" after a number with "point five".
func halves(s string) string {
	const mark = "\x00"
	segments := strings.Split(replaceWords(s, half, true, func([]string) string { return mark }), mark)
	var out []string
	for i, segment := range segments {
		words := fields(segment)
		if len(words) == 0 {
			continue
		}
		out = append(out, segment)
		if i == len(segments)-1 {
			continue
		}
		switch numerals[words[len(words)-1]].kind {
		case zero, digit, ten, multiplier:
			out = append(out, "point five")
		default:
			out = append(out, "and a half")
		}
	}
	return strings.Join(out, " ")
}

// reader reads a text's words and writes numbers in digits. The current number
// is n, or text if it is no longer an integer, or neither.
type reader struct {
	words  []string
	at     int
	prefix string
	n      *big.Int
	text   string
	out    []string
}

func (r *reader) word(i int) string {
	if i < 0 || i >= len(r.words) {
		return ""
	}
	return r.words[i]
}

func (r *reader) kind(i int) kind { return numerals[r.word(i)].kind }

func (r *reader) none() bool { return r.n == nil && r.text == "" }

// value returns the current number's text, "" for none.
func (r *reader) value() string {
	if r.n != nil {
		return r.n.String()
	}
	return r.text
}

// extend returns the number's text before more digits: a zero vanishes.
func (r *reader) extend() string {
	if r.n != nil && r.n.Sign() == 0 {
		return ""
	}
	return r.value()
}

func (r *reader) setInt(n *big.Int) { r.n, r.text = n, "" }

func (r *reader) setText(s string) { r.n, r.text = nil, s }

func (r *reader) put(s string) {
	r.out = append(r.out, r.prefix+s)
	r.prefix, r.n, r.text = "", nil, ""
}

func (r *reader) flush() {
	if !r.none() {
		r.put(r.value())
	}
}

func (r *reader) nextIsNumeric() bool { return numeric.MatchString(r.word(r.at + 1)) }

func (r *reader) read() {
	for ; r.at < len(r.words); r.at++ {
		current := r.words[r.at]
		bare := current
		if first, n := utf8.DecodeRuneInString(current); strings.ContainsRune(prefixes, first) {
			bare = current[n:]
		}
		if numeric.MatchString(bare) {
			r.arabic(current, bare)
			continue
		}
		w := numerals[current]
		switch w.kind {
		case zero:
			r.setText(r.extend() + "0")
		case digit, digitSuffixed:
			r.digit(w.value)
		case ten, tenSuffixed:
			r.ten(w.value)
		case multiplier, multiplierSuffixed:
			r.multiply(w.value)
		case sign, unit, percent:
			r.sign(current, w.kind)
		case special:
			r.special(current)
		default:
			r.flush()
			r.put(current)
		}
		if w.suffix != "" {
			r.put(r.value() + w.suffix)
		}
	}
	r.flush()
}

// arabic reads digits, optionally with a sign and a fraction.
func (r *reader) arabic(current, bare string) {
	if strings.HasSuffix(r.text, ".") {
		r.text += current
		return
	}
	r.flush()
	if sign := strings.TrimSuffix(current, bare); sign != "" {
		r.prefix = sign
	}
	if f, ok := new(big.Rat).SetString(ascii(bare)); ok && f.IsInt() {
		r.setInt(f.Num())
	} else {
		r.setText(bare)
	}
}

// ascii writes the digits of any script as ASCII.
func ascii(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.Is(unicode.Nd, c) {
			return c
		}
		first := c // of a row of scripts' digits
		for unicode.Is(unicode.Nd, first-1) {
			first--
		}
		return '0' + (c-first)%10
	}, s)
}

// add adds a digit or ten to an integer with enough zeros, or appends it.
func (r *reader) add(v *big.Int) {
	room := int64(100)
	if v.Cmp(big.NewInt(10)) < 0 {
		room = 10
	}
	if new(big.Int).Mod(r.n, big.NewInt(room)).Sign() == 0 {
		r.setInt(new(big.Int).Add(r.n, v))
	} else {
		r.setText(r.n.String() + v.String())
	}
}

// digit reads a number below twenty. It is appended to a number below twenty
// and to a number that is not an integer, where it replaces the zero of a ten.
func (r *reader) digit(v *big.Int) {
	switch before := r.kind(r.at - 1); {
	case r.none():
		r.setInt(v)
	case r.n == nil || before == digit:
		s := r.value()
		if before == ten && v.Cmp(big.NewInt(10)) < 0 {
			s = s[:len(s)-1]
		}
		r.setText(s + v.String())
	default:
		r.add(v)
	}
}

func (r *reader) ten(v *big.Int) {
	switch {
	case r.none():
		r.setInt(v)
	case r.n == nil:
		r.setText(r.text + v.String())
	default:
		r.add(v)
	}
}

// fraction matches a number with or without decimals.
var fraction = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)$`)

// multiply multiplies the current number or, if it is an integer, its last
// three digits.
func (r *reader) multiply(v *big.Int) {
	switch {
	case r.none():
		r.setInt(v)
	case r.n != nil:
		rest := new(big.Int).Mod(r.n, big.NewInt(1000))
		before := new(big.Int).Sub(r.n, rest)
		r.setInt(before.Add(before, rest.Mul(rest, v)))
	default:
		if s := ascii(r.text); fraction.MatchString(s) {
			if f, ok := new(big.Rat).SetString(s); ok && f.Mul(f, new(big.Rat).SetInt(v)).IsInt() {
				r.setInt(f.Num())
				return
			}
		}
		r.flush()
		r.setInt(v)
	}
}

// sign reads a sign before a number, or a unit or "percent" after one.
func (r *reader) sign(current string, k kind) {
	switch {
	case k == sign:
		r.flush()
		if r.kind(r.at+1) != other || r.nextIsNumeric() {
			r.prefix = signs[current]
		} else {
			r.put(current)
		}
	case r.none():
		r.put(current)
	case k == unit:
		r.prefix = units[current]
		r.flush()
	case current == "percent":
		r.put(r.value() + "%")
	case r.word(r.at+1) == "cent": // per cent
		r.put(r.value() + "%")
		r.at++
	default:
		r.flush()
		r.put(current)
	}
}

// special reads words that only sometimes belong to a number.
func (r *reader) special(current string) {
	next := r.kind(r.at + 1)
	switch {
	case next == other && !r.nextIsNumeric():
		r.flush()
		r.put(current)
	case current == "and":
		if r.kind(r.at-1) != multiplier {
			r.flush()
			r.put(current)
		}
	case current == "point":
		if next == zero || next == digit || next == ten || r.nextIsNumeric() {
			r.setText(r.extend() + ".")
		}
	case next == digit || next == zero:
		times, d := 2, "0"
		if current == "triple" {
			times = 3
		}
		if next == digit {
			d = numerals[r.word(r.at+1)].value.String()
		}
		r.setText(r.extend() + strings.Repeat(d, times))
		r.at++
	default:
		r.flush()
		r.put(current)
	}
}
