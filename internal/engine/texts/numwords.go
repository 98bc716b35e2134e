// Package texts compares and interprets written text: how numbers are read
// aloud, whether a text is in another language, how far two texts differ.
package texts

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// largest is the first number that is only read digit by digit.
	largest = 1_000_000_000_000
	// maxDigits is the most digits in a word; longer ones are not read aloud.
	maxDigits = 20
)

// language defines how numbers are read in one language.
type language struct {
	cardinal func(n int) []string // the readings of a number from 0 to largest-1
	year     func(n int) []string // further readings of 1100 to 2099, or nil
	point    []string             // the words for a decimal point
	decimal  byte                 // the sign of the decimal point
	signs    map[string][]string
	clock    string   // between hours and minutes, "" for none
	hour     string   // after a full hour
	cents    []string // the words between euros and cents
	space    string   // between words
}

var known = map[string]*language{
	"en": &english, "de": &german, "es": &spanish, "fr": &french, "pt": &portuguese, "zh": &chinese,
}

// Readings returns the spoken forms, in English, German, Spanish, French,
// Portuguese and Chinese, of a word with digits, the most common
// first: "1984", "3.5", "10:30", "€20", "5%". It returns none for other words,
// for more than 20 digits, and for an unknown language.
func Readings(code, word string) []string {
	l := known[code]
	if l == nil {
		return nil
	}
	number, before, after := strip(word)
	if number == "" || digits(number) > maxDigits {
		return nil
	}
	out := l.money(number, before+after)
	for _, r := range l.number(number) {
		out = append(out, l.signed(r, before, after)...)
	}
	return unique(out)
}

// strip separates a number from its signs and punctuation.
func strip(word string) (number, before, after string) {
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	first, last := strings.IndexFunc(word, isDigit), strings.LastIndexFunc(word, isDigit)
	if first < 0 {
		return "", "", ""
	}
	const punctuation = ".,;:!?\"'()[]«»“”„¿¡…。，！？；：、"
	before = strings.TrimRight(strings.TrimLeft(word[:first], punctuation), punctuation)
	after = strings.Trim(word[last+1:], punctuation)
	return word[first : last+1], before, after
}

// number returns the readings of digits with separators.
func (l *language) number(s string) []string {
	if hours, minutes, ok := strings.Cut(s, ":"); ok {
		return l.time(hours, minutes)
	}
	group := byte(',')
	if l.decimal == ',' {
		group = '.'
	}
	whole, fraction, decimal := strings.Cut(s, string(l.decimal))
	if strings.IndexByte(whole, group) > 0 {
		for i, part := range strings.Split(whole, string(group)) {
			if i > 0 && len(part) != 3 || len(part) > 3 {
				return nil
			}
		}
		whole = strings.ReplaceAll(whole, string(group), "")
	}
	if !plain(whole) || decimal && !plain(fraction) {
		return nil
	}
	out := l.whole(whole)
	if !decimal {
		return out
	}
	var all []string
	for _, p := range l.point {
		head := out[0] + l.space + p + l.space
		all = append(all, head+l.spell(fraction))
		if n, err := strconv.Atoi(fraction); err == nil && fraction[0] != '0' && n < 100 {
			all = append(all, head+l.cardinal(n)[0])
		}
	}
	return all
}

// money returns the readings of an amount in a currency with hundredths. It
// returns none for other words.
func (l *language) money(number, sign string) (out []string) {
	units, hundredths, ok := strings.Cut(number, string(l.decimal))
	if !ok || len(hundredths) != 2 || !plain(hundredths) || !strings.Contains("€$£", sign) {
		return nil
	}
	n, err := strconv.Atoi(hundredths)
	whole := l.number(units)
	if err != nil || len(whole) == 0 {
		return nil
	}
	for _, name := range l.signs[sign] {
		amount := whole[0] + l.space + name
		if n == 0 {
			out = append(out, amount)
			continue
		}
		for _, joint := range l.cents {
			out = append(out, strings.Join(strings.Fields(amount+" "+joint+" "+l.cardinal(n)[0]), " "))
		}
	}
	return out
}

// whole returns the readings of digits: as a number, as a year, digit by digit.
func (l *language) whole(s string) []string {
	n, err := strconv.Atoi(s)
	if err != nil || int64(n) >= largest || len(s) > 1 && s[0] == '0' {
		return []string{l.spell(s)}
	}
	out := l.cardinal(n)
	if l.year != nil && len(s) == 4 && n >= 1100 && n < 2100 {
		out = append(l.year(n), out...)
	}
	if len(s) > 1 {
		out = append(out, l.spell(s))
	}
	return out
}

// time returns the readings of a time of day.
func (l *language) time(hours, minutes string) []string {
	if !plain(hours) || !plain(minutes) || len(minutes) != 2 { // Atoi takes signs
		return nil
	}
	h, err := strconv.Atoi(hours)
	m, err2 := strconv.Atoi(minutes)
	if err != nil || err2 != nil || h > 24 || m > 59 {
		return nil
	}
	words := func(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, " ")), l.space) }
	hour := l.cardinal(h)[0]
	if m == 0 {
		return []string{words(hour, l.hour), hour}
	}
	minute := l.cardinal(m)[0]
	out := []string{words(hour, l.clock, minute), words(hour, minute)}
	if m < 10 {
		out = append(out, words(hour, l.spell(minutes)))
	}
	return out
}

// signed adds the words for signs to a reading, none for an unknown one.
func (l *language) signed(reading, before, after string) []string {
	if before+after == "" {
		return []string{reading}
	}
	if before != "" && after != "" {
		return nil
	}
	names, ok := l.signs[strings.ToLower(before+after)]
	if !ok {
		return nil
	}
	var out []string
	for _, name := range names {
		out = append(out, reading+l.space+name)
	}
	return out
}

// spell reads digits one by one.
func (l *language) spell(digits string) string {
	parts := make([]string, len(digits))
	for i := range digits {
		parts[i] = l.cardinal(int(digits[i] - '0'))[0]
	}
	return strings.Join(parts, l.space)
}

// digits returns the number of digits in s.
func digits(s string) (n int) {
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

// plain reports whether s consists only of digits.
func plain(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// unique removes duplicates from a short list.
func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
