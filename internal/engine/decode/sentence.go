package decode

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

const (
	// pauseSplit is the silence (s) between words that ends a segment.
	pauseSplit = 0.8
	// longest is the greatest length (s) of a segment inside a sentence.
	longest = 30.0
)

// Sentences divides words into segments: a segment ends at the end of a
// sentence, where the language changes and at a pause of at least 0.8 s; a segment longer than 30 s is
// split at its longest pause. Sentences ignores the words' windows, so a
// sentence across a window's border stays whole. It keeps word times only if
// withWords is set.
func Sentences(words []Word, withWords bool) []asr.Segment {
	var segments []asr.Segment
	begin := 0
	for i := range words {
		if i+1 < len(words) && !borders(words[i], words[i+1]) {
			continue
		}
		segments = appendSegments(segments, words[begin:i+1], withWords)
		begin = i + 1
	}
	return segments
}

// borders reports whether a segment ends between two words.
func borders(word, next Word) bool {
	return EndsSentence(word.Text, next.Text) || word.Language != next.Language || next.Start-word.End >= pauseSplit
}

// Settler emits sentences as soon as later words cannot change them: the
// sentences that Sentences will return, without their words.
type Settler struct {
	Speech []audio.Span              // of the recording
	Give   func(whole []asr.Segment) // called with the next sentences

	open []Word // words of a sentence that may continue
}

// Add adds the next words.
func (s *Settler) Add(words []Word) {
	s.open = append(s.open, words...)
	Settle(s.open, s.Speech)
	for i := len(s.open) - 2; i >= 0; i-- {
		if borders(s.open[i], s.open[i+1]) {
			s.Give(Sentences(s.open[:i+1], false))
			s.open = slices.Clone(s.open[i+1:])
			return
		}
	}
}

func appendSegments(segments []asr.Segment, words []Word, withWords bool) []asr.Segment {
	n := len(words)
	if n > 3 && words[n-1].End-words[0].Start > longest {
		best, at := -1.0, n/2
		for i := n / 4; i < n-n/4-1; i++ {
			pause := words[i+1].Start - words[i].End
			if endsClause(words[i].Text) {
				pause += 0.1
			}
			if pause > best+1e-9 {
				best, at = pause, i+1
			}
		}
		return appendSegments(appendSegments(segments, words[:at], withWords), words[at:], withWords)
	}
	s := asr.Segment{Start: words[0].Start, End: words[n-1].End, Seek: words[0].Seek, Language: words[0].Language}
	var text strings.Builder
	tokens := 0
	for _, w := range words {
		text.WriteString(w.Text)
		s.AvgLogProb += w.LogProb
		tokens += w.Tokens
		s.Tokens = append(s.Tokens, w.IDs...)
		s.Temperature = max(s.Temperature, w.Temperature)
		s.NoSpeechProb += w.NoSpeechProb / float64(n)
		if withWords {
			word := w.Word
			word.Text, word.Probability = strings.TrimSpace(w.Text), min(max(w.Probability, 0), 1)
			s.Words = append(s.Words, word)
		}
	}
	if tokens > 0 {
		s.AvgLogProb /= float64(tokens)
	}
	s.Text = strings.TrimSpace(text.String())
	return append(segments, s)
}

// titles are abbreviations before names, whose full stop ends no sentence.
var titles = map[string]bool{
	"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true, "jr": true, "sr": true, "vs": true, "no": true,
	"sra": true, "dra": true, "mme": true, "hr": true, "fr": true, "z.b": true, "d.h": true, "bzw": true, "e.g": true, "i.e": true,
}

// EndsSentence reports whether a sentence ends between two words or texts.
func EndsSentence(word, next string) bool {
	word = unclosed(strings.TrimSpace(word))
	end, size := utf8.DecodeLastRuneInString(word)
	first := firstSolid(next)
	switch end {
	case '。', '！', '？', '!', '?', '؟', '।', '॥', '።', '။', '։':
		return !unicode.IsLower(first)
	case '.', '…', '｡':
		word = word[strings.LastIndexAny(word, " \n")+1:]
		stem := strings.ToLower(strings.TrimRight(word[:len(word)-size], "."))
		stem = strings.TrimLeftFunc(stem, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if titles[stem] || (utf8.RuneCountInString(stem) == 1 && unicode.IsLetter(firstSolid(stem)) && unicode.IsUpper(first)) {
			return false // "Dr. Smith", "J. Smith"
		}
		return !unicode.IsLower(first)
	}
	return false
}

func firstSolid(text string) rune {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
	}
	return 0
}
