package texts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReadings(t *testing.T) {
	for _, test := range []struct{ language, word, want string }{ // want is one of the readings
		{"en", "0", "zero"},
		{"en", "7", "seven"},
		{"en", "13", "thirteen"},
		{"en", "21", "twenty one"},
		{"en", "40", "forty"},
		{"en", "105", "one hundred and five"},
		{"en", "105", "one hundred five"},
		{"en", "1,234", "one thousand two hundred thirty four"},
		{"en", "1001", "one thousand and one"},
		{"en", "2500000", "two million five hundred thousand"},
		{"en", "1984", "nineteen eighty four"},
		{"en", "1905,", "nineteen oh five"},
		{"en", "1900", "nineteen hundred"},
		{"en", "2026.", "twenty twenty six"},
		{"en", "2005", "two thousand five"},
		{"en", "3.14", "three point one four"},
		{"en", "007", "zero zero seven"},
		{"en", "10:30", "ten thirty"},
		{"en", "10:00", "ten o'clock"},
		{"en", "£1,200.50", "twelve hundred pounds fifty"},
		{"en", "$5.00", "five dollars"},
		{"de", "3,50€", "drei euro fünfzig"},
		{"es", "10:00", "diez en punto"},
		{"es", "3,50€", "tres euros con cincuenta"},
		{"fr", "3,50€", "trois euros cinquante"},
		{"pt", "10:00", "dez horas"},
		{"pt", "3,50€", "três euros e cinquenta"},
		{"en", "€20", "twenty euros"},
		{"en", "5%", "five percent"},
		{"en", "(12)", "twelve"},
		{"de", "1", "eins"},
		{"de", "17", "siebzehn"},
		{"de", "21", "einundzwanzig"},
		{"de", "30", "dreißig"},
		{"de", "100", "hundert"},
		{"de", "101", "einhunderteins"},
		{"de", "1.234", "tausendzweihundertvierunddreißig"},
		{"de", "1984", "neunzehnhundertvierundachtzig"},
		{"de", "2026", "zweitausendsechsundzwanzig"},
		{"de", "21000", "einundzwanzigtausend"},
		{"de", "1000000", "eine million"},
		{"de", "3000000", "drei millionen"},
		{"de", "1000000000", "eine milliarde"},
		{"de", "3,5", "drei komma fünf"},
		{"de", "8:15", "acht uhr fünfzehn"},
		{"de", "20€", "zwanzig euro"},
		{"de", "5%", "fünf prozent"},
		{"es", "16", "dieciséis"},
		{"es", "21", "veintiuno"},
		{"es", "21", "veintiún"},
		{"es", "31", "treinta y uno"},
		{"es", "100", "cien"},
		{"es", "115", "ciento quince"},
		{"es", "1984", "mil novecientos ochenta y cuatro"},
		{"es", "21000", "veintiún mil"},
		{"es", "500", "quinientas"},
		{"es", "2.000.000", "dos millones"},
		{"es", "1000000", "un millón"},
		{"es", "3,5", "tres coma cinco"},
		{"es", "5%", "cinco por ciento"},
		{"fr", "21", "vingt et un"},
		{"fr", "21", "vingt et une"},
		{"fr", "71", "soixante et onze"},
		{"fr", "75", "soixante-quinze"},
		{"fr", "80", "quatre-vingts"},
		{"fr", "81", "quatre-vingt-un"},
		{"fr", "91", "quatre-vingt-onze"},
		{"fr", "99", "quatre-vingt-dix-neuf"},
		{"fr", "200", "deux cents"},
		{"fr", "201", "deux cent un"},
		{"fr", "1984", "mille neuf cent quatre-vingt-quatre"},
		{"fr", "1984", "dix-neuf cent quatre-vingt-quatre"},
		{"fr", "80000", "quatre-vingt mille"},
		{"fr", "2000000", "deux millions"},
		{"fr", "3,5", "trois virgule cinq"},
		{"fr", "10:30", "dix heures trente"},
		{"pt", "16", "dezesseis"},
		{"pt", "22", "vinte e dois"},
		{"pt", "22", "vinte e duas"},
		{"pt", "100", "cem"},
		{"pt", "101", "cento e um"},
		{"pt", "1984", "mil novecentos e oitenta e quatro"},
		{"pt", "1900", "mil e novecentos"},
		{"pt", "2026", "dois mil e vinte e seis"},
		{"pt", "200", "duzentas"},
		{"pt", "1000000", "um milhão"},
		{"pt", "3000000", "três milhões"},
		{"pt", "3,5", "três vírgula cinco"},
		{"zh", "2", "二"},
		{"zh", "2", "两"},
		{"zh", "10", "十"},
		{"zh", "18", "十八"},
		{"zh", "20", "二十"},
		{"zh", "101", "一百零一"},
		{"zh", "110", "一百一十"},
		{"zh", "115", "一百一十五"},
		{"zh", "1984", "一九八四"},
		{"zh", "1984", "一千九百八十四"},
		{"zh", "2005", "两千零五"},
		{"zh", "10010", "一万零一十"},
		{"zh", "350000", "三十五万"},
		{"zh", "3.5", "三点五"},
		{"zh", "10:30", "十点三十"},
		{"zh", "7月", "七月"},
	} {
		assert.Contains(t, Readings(test.language, test.word), test.want, "%s in %s", test.word, test.language)
	}
}

func TestNoReadings(t *testing.T) {
	for _, word := range []string{
		"", "word", "A4", "4x4", "1-2", "1/2", "1.2.3", "25:99", "v2", "3rd", "12,34,5", "5€$", "٣",
		"10:-5", "10:+5", "-10:05", "1:-0", "+1:00", "10:5x",
	} {
		assert.Empty(t, Readings("en", word), word)
	}
	assert.Empty(t, Readings("ja", "5"), "an unknown language")
	assert.Equal(t, []string{"nine nine nine nine nine nine nine nine nine nine nine nine nine"}, Readings("en", "9999999999999"))
	assert.Len(t, Readings("en", strings.Repeat("7", maxDigits)), 1)
	for _, long := range []string{strings.Repeat("7", maxDigits+1), "1." + strings.Repeat("7", maxDigits), strings.Repeat("0", 5000)} {
		for code := range known {
			assert.Empty(t, Readings(code, long), "%d digits are not read aloud", len(long))
		}
	}
}

// TestReadingsDiffer checks that different numbers have different readings in
// every language.
func TestReadingsDiffer(t *testing.T) {
	for code := range known {
		seen := map[string]int{}
		for n := range 12_000 {
			first := known[code].cardinal(n)[0]
			assert.NotContains(t, first, "  ")
			assert.Equal(t, strings.TrimSpace(first), first)
			other, twice := seen[first]
			assert.False(t, twice, "%s: %d and %d are %q", code, n, other, first)
			seen[first] = n
		}
	}
}

func FuzzReadings(f *testing.F) {
	for _, word := range []string{"1984", "€20.50", "10:30", "1,234,567.89", "٣", "0:", ":00", "1..2", "%", "10:-5", "10:+5"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		for code := range known {
			for _, r := range Readings(code, word) {
				assert.False(t, strings.ContainsAny(r, "0123456789"), "%q is read as %q", word, r)
				assert.NotEmpty(t, r)
			}
		}
	})
}
