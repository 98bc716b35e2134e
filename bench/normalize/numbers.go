package normalize

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
	value := big.NewInt(100)
	for _, w := range slices.Concat([]string{"hundred"}, thousands) {
		m[w], m[w+"s"], m[w+"th"] = numeral{multiplier, value, ""}, numeral{multiplierSuffixed, value, "s"}, numeral{multiplierSuffixed, value, "th"}
		if w == "hundred" {
			value = big.NewInt(1000)
		} else {
			value = new(big.Int).Mul(value, big.NewInt(1000))
		}
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

// digits replaces the number words of a text with digits.
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

// hasDigits reports whether a text has a digit, without which no pattern of
// digits needs to be searched for.
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

// reader reads the words of a text and writes numbers in digits. The current
// number is n, or text if it is no longer an integer; it is empty if both are
// unset.
type reader struct {
	words  []string
	at     int
	prefix string
	n      *big.Int
	text   string
	isText bool
	out    []string
}

func (r *reader) word(i int) string {
	if i < 0 || i >= len(r.words) {
		return ""
	}
	return r.words[i]
}

func (r *reader) kind(i int) kind { return numerals[r.word(i)].kind }

func (r *reader) none() bool { return r.n == nil && !r.isText }

// value returns the current number's text, "" for none.
func (r *reader) value() string {
	if r.isText || r.n == nil {
		return r.text
	}
	return r.n.String()
}

// extend returns the current number's text before more digits are appended: a
// zero vanishes.
func (r *reader) extend() string {
	if !r.isText && r.n != nil && r.n.Sign() == 0 {
		return ""
	}
	return r.value()
}

func (r *reader) setInt(n *big.Int) { r.n, r.text, r.isText = n, "", false }

func (r *reader) setText(s string) { r.n, r.text, r.isText = nil, s, true }

// put writes a word and clears the number.
func (r *reader) put(s string) {
	r.out = append(r.out, r.prefix+s)
	r.prefix = ""
	r.clear()
}

func (r *reader) clear() { r.n, r.text, r.isText = nil, "", false }

// flush writes the number.
func (r *reader) flush() {
	if !r.none() {
		r.put(r.value())
	}
}

func (r *reader) nextIsNumeric() bool { return numeric.MatchString(r.word(r.at + 1)) }

// read reads all words.
func (r *reader) read() {
	for ; r.at < len(r.words); r.at++ {
		current := r.words[r.at]
		first, n := utf8.DecodeRuneInString(current)
		bare, signed := current, strings.ContainsRune(prefixes, first)
		if signed {
			bare = current[n:]
		}
		if numeric.MatchString(bare) {
			r.arabic(current, bare, signed)
			continue
		}
		switch w := numerals[current]; w.kind {
		case zero:
			r.setText(r.extend() + "0")
		case digit:
			r.digit(w.value)
		case digitSuffixed:
			r.digitSuffixed(w)
		case ten:
			r.ten(w.value)
		case tenSuffixed:
			r.tenSuffixed(w)
		case multiplier:
			r.multiply(w.value)
		case multiplierSuffixed:
			r.multiplySuffixed(w)
		case sign, unit, percent:
			r.sign(current, w.kind)
		case special:
			r.special(current)
		default:
			r.flush()
			r.put(current)
		}
	}
	r.flush()
}

// arabic reads digits, optionally with a sign and a fraction.
func (r *reader) arabic(current, bare string, signed bool) {
	if !r.none() {
		if r.isText && strings.HasSuffix(r.text, ".") {
			r.text += current
			return
		}
		r.flush()
	}
	if signed {
		_, n := utf8.DecodeRuneInString(current)
		r.prefix = current[:n]
	}
	if f, ok := new(big.Rat).SetString(ascii(bare)); ok && f.IsInt() {
		r.setInt(new(big.Int).Set(f.Num()))
	} else {
		r.setText(bare)
	}
}

// ascii writes the digits of any script as ASCII.
func ascii(s string) string {
	return strings.Map(func(c rune) rune {
		for _, t := range unicode.Nd.R16 {
			if rune(t.Lo) <= c && c <= rune(t.Hi) {
				return '0' + (c-rune(t.Lo))%10
			}
		}
		for _, t := range unicode.Nd.R32 {
			if rune(t.Lo) <= c && c <= rune(t.Hi) {
				return '0' + (c-rune(t.Lo))%10
			}
		}
		return c
	}, s)
}

// joined returns the number after a digit or a ten: the sum if the number ends
// in enough zeros, otherwise the concatenation.
func (r *reader) joined(v *big.Int) (n *big.Int, text string) {
	room := int64(100)
	if v.Cmp(big.NewInt(10)) < 0 {
		room = 10
	}
	if new(big.Int).Mod(r.n, big.NewInt(room)).Sign() == 0 {
		return new(big.Int).Add(r.n, v), ""
	}
	return nil, r.n.String() + v.String()
}

// behind returns the current number with digits appended; they replace the zero
// of a ten.
func (r *reader) behind(v *big.Int) string {
	s := r.value()
	if r.kind(r.at-1) == ten && v.Cmp(big.NewInt(10)) < 0 {
		s = s[:len(s)-1]
	}
	return s + v.String()
}

func (r *reader) digit(v *big.Int) {
	switch {
	case r.none():
		r.setInt(v)
	case r.isText || r.kind(r.at-1) == digit:
		r.setText(r.behind(v))
	default:
		r.set(r.joined(v))
	}
}

func (r *reader) set(n *big.Int, text string) {
	if n != nil {
		r.setInt(n)
	} else {
		r.setText(text)
	}
}

func (r *reader) digitSuffixed(w numeral) {
	switch {
	case r.none():
		r.put(w.value.String() + w.suffix)
	case r.isText || r.kind(r.at-1) == digit:
		r.put(r.behind(w.value) + w.suffix)
	default:
		r.set(r.joined(w.value))
		r.put(r.value() + w.suffix)
	}
}

func (r *reader) ten(v *big.Int) {
	switch {
	case r.none():
		r.setInt(v)
	case r.isText:
		r.setText(r.text + v.String())
	default:
		r.set(r.joined(v))
	}
}

func (r *reader) tenSuffixed(w numeral) {
	switch {
	case r.none():
		r.put(w.value.String() + w.suffix)
	case r.isText:
		r.put(r.text + w.value.String() + w.suffix)
	default:
		r.set(r.joined(w.value))
		r.put(r.value() + w.suffix)
	}
}

// times returns the current number times v, nil if it is not an integer.
func (r *reader) times(v *big.Int) *big.Int {
	f, ok := new(big.Rat), fraction.MatchString(ascii(r.value()))
	if ok {
		f, ok = f.SetString(ascii(r.value()))
	}
	if !ok {
		return nil
	}
	if f.Mul(f, new(big.Rat).SetInt(v)); !f.IsInt() {
		return nil
	}
	return new(big.Int).Set(f.Num())
}

// fraction matches a number with or without decimals.
var fraction = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)$`)

// thousandfold returns the number with its last three digits multiplied by v.
func (r *reader) thousandfold(v *big.Int) *big.Int {
	rest := new(big.Int).Mod(r.n, big.NewInt(1000))
	before := new(big.Int).Sub(r.n, rest)
	return before.Add(before, rest.Mul(rest, v))
}

func (r *reader) multiply(v *big.Int) {
	switch {
	case r.none():
		r.setInt(v)
	case r.isText || r.n.Sign() == 0:
		if p := r.times(v); p != nil {
			r.setInt(p)
		} else {
			r.flush()
			r.setInt(v)
		}
	default:
		r.setInt(r.thousandfold(v))
	}
}

func (r *reader) multiplySuffixed(w numeral) {
	switch {
	case r.none():
		r.put(w.value.String() + w.suffix)
	case r.isText:
		if p := r.times(w.value); p != nil {
			r.put(p.String() + w.suffix)
		} else {
			r.flush()
			r.put(w.value.String() + w.suffix)
		}
	default:
		r.put(r.thousandfold(w.value).String() + w.suffix)
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
