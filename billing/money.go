// Package billing keeps accounts' money: prices with a validity period, quotes,
// holds, resource packs, settlement, recharge, refund and the append-only
// ledger. It knows nothing of audio beyond a length in seconds.
//
// Amounts are whole ten-thousandths of the currency unit. Functions that take a
// transaction run in the caller's. A task, its hold and its job are thus
// created together, and so are its result, its charge and its callback.
package billing

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Money is an amount in ten-thousandths of the currency unit. In JSON it is a number with the exact digits: 12.5, 0.0033.
type Money int64

// Unit is one whole unit of the currency.
const Unit Money = 10_000

// errAmount is returned for a text that is not an amount of money.
var errAmount = errors.New("not an amount of money")

// String returns the amount with exactly four digits after the point: "12.5000", "-0.0033".
func (m Money) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", uint64(-m)
	}
	return fmt.Sprintf("%s%d.%04d", sign, n/uint64(Unit), n%uint64(Unit))
}

// Number returns the amount with no more digits than it needs: "12.5", "0.0033", "7".
func (m Money) Number() string { return strings.TrimSuffix(strings.TrimRight(m.String(), "0"), ".") }

// MarshalJSON writes the amount as a JSON number with its exact digits.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.Number()), nil }

// UnmarshalJSON reads a JSON number, or a string as ParseMoney does.
func (m *Money) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	parsed, err := ParseMoney(text)
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}

// ParseMoney reads a decimal number with at most four digits after the point ("12", "-0.5", "+3.1415").
// Other forms (exponents, spaces, commas), more digits, and more than about 922 trillion are errors.
func ParseMoney(text string) (Money, error) {
	fail := func(why string) (Money, error) {
		shown := text
		if len(shown) > 40 {
			shown = shown[:40] + "…"
		}
		return 0, fmt.Errorf("%w: %q %s", errAmount, shown, why)
	}
	digits, negative := text, false
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		negative, digits = digits[0] == '-', digits[1:]
	}
	whole, fraction, point := strings.Cut(digits, ".")
	if whole == "" || (point && fraction == "") {
		return fail("is not a decimal number")
	}
	for _, c := range whole + fraction {
		if c < '0' || c > '9' {
			return fail("is not a decimal number")
		}
	}
	if len(fraction) > 4 {
		return fail("has more than four digits after the point")
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 4-len(fraction)), 10, 63)
	if err != nil {
		return fail("is too large")
	}
	if negative {
		return -Money(n), nil
	}
	return Money(n), nil
}

// share returns amount × numerator / denominator rounded half up. amount and numerator are not negative, denominator is
// positive; ok is false when the product does not fit.
func share(amount Money, numerator, denominator int64) (_ Money, ok bool) {
	high, low := bits.Mul64(uint64(amount), uint64(numerator))
	low, carry := bits.Add64(low, uint64(denominator)/2, 0)
	high += carry
	if high >= uint64(denominator) {
		return 0, false
	}
	quotient, _ := bits.Div64(high, low, uint64(denominator))
	return Money(quotient), quotient <= math.MaxInt64
}
