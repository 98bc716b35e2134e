package decode

import (
	"compress/zlib"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// CompressionRatio is the length of a text over its length after zlib, the measure
// of repetition that the Whisper paper (Radford et al. 2022, section 4.5) uses: a
// decode whose text exceeds 2.4 is taken for a loop. 0 for an empty text.
func CompressionRatio(text string) float64 {
	if text == "" {
		return 0
	}
	var n counter
	z := writers.Get().(*zlib.Writer)
	defer writers.Put(z)
	z.Reset(&n)
	_, _ = z.Write([]byte(text)) // a counter never fails
	_ = z.Close()
	return float64(len(text)) / float64(n)
}

// writers are kept, because each takes 600 KB.
var writers = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Loops: an n-gram of up to loopPeriod words said loopTimes times or more in a row,
// loopWords words or more in all. People do say things twice, and "no no no no".
const (
	loopPeriod = 24
	loopTimes  = 4
	loopWords  = 12
)

// Unloop keeps only the first of every n-gram that is repeated over and over
// (at least 4 times and 12 words) and reports whether it removed any. Case and
// punctuation are ignored.
func Unloop(words []Piece) ([]Piece, bool) {
	keys := make([]string, len(words))
	for i, w := range words {
		keys[i] = strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, w.Text)
	}
	var kept []Piece
	found := false
	for i := 0; i < len(words); {
		period, times := repeats(keys[i:])
		if times == 0 {
			kept = append(kept, words[i])
			i++
			continue
		}
		found = true
		kept = append(kept, words[i:i+period]...)
		i += period * times
		for i < len(words) && keys[i] == keys[i-period] { // the last, cut off
			i++
		}
	}
	return kept, found
}

// repeats returns the shortest n-gram that keys begin with over and over, and how
// often; 0, 0 if none does.
func repeats(keys []string) (period, times int) {
	for p := 1; p <= loopPeriod && p*loopTimes <= len(keys); p++ {
		n := 1
		for (n+1)*p <= len(keys) && slices.Equal(keys[n*p:(n+1)*p], keys[:p]) {
			n++
		}
		if n >= loopTimes && n*p >= loopWords {
			return p, n
		}
	}
	return 0, 0
}
