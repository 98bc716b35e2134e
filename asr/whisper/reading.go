package whisper

import (
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/wordtimes"
	"github.com/otograph/otograph/internal/files/textfile"
)

// Signs of a failed decode (Whisper: Radford et al. 2022, section 4.5).
const (
	maxCompression = 2.4
	minLogProb     = -1.0
	// unsureNoSpeech is the no-speech probability above which a text below
	// minLogProb is discarded, regardless of the caller's threshold.
	unsureNoSpeech = 0.6
	// sureNoSpeech is the no-speech probability above which a window is not
	// decoded at the published threshold.
	sureNoSpeech = 0.9
)

// restSeconds is the least speech, counted from restSlack after the text's last
// time mark, that is decoded again.
const restSeconds, restSlack = 1.0, 0.2

// attempt is one decode of a window and its measurements.
type attempt struct {
	tokens                  []token
	text                    string
	avgLogProb, compression float64
	looped                  bool
	temperature             float64
	times                   []wordtimes.Time // of the words, in seconds of the file; nil if not measured
}

// degenerate reports whether a text loops and should be decoded again.
func (a attempt) degenerate() bool {
	return len(a.tokens) > 0 && (a.looped || a.compression > maxCompression)
}

// failed reports whether a text is degenerate or unlikely.
func (a attempt) failed() bool {
	return a.degenerate() || len(a.tokens) > 0 && a.avgLogProb < minLogProb
}

// better reports whether a is preferable to b when both failed.
func (a attempt) better(b attempt) bool {
	if bad, worse := a.degenerate(), b.degenerate(); bad != worse {
		return !bad
	}
	return a.avgLogProb > b.avgLogProb
}

// result is a window's text and measures after first pass and repair.
type result struct {
	words    []decode.Word
	stats    asr.Stats
	attempt  attempt
	language string            // language of the text
	sure     float64           // the probability of that language
	unsure   [][]decode.Window // passages that may be in another language, as rounds of detection
	noSpeech float64           // the probability of no speech
	bare     []bare            // speech that the text leaves without words
	tried    bool              // some of it has been decoded again
	echoes   []decode.Echo     // sound removed from the window
}

// spoken returns the words without loops, with the words of echoes.
func (r *result) spoken() []decode.Word {
	words, _ := decode.Unloop(r.words)
	return decode.Repeat(words, r.echoes)
}

// settle reads the words of a window's decode, unless they are discarded.
func (e *Engine) settle(r *result, t *task, w decode.Window) {
	r.words, r.bare = nil, nil
	a := r.attempt
	if r.noSpeech > t.quiet() || r.noSpeech > unsureNoSpeech && len(a.tokens) > 0 && a.avgLogProb < minLogProb {
		r.stats.Discarded++
		return
	}
	if len(a.tokens) == 0 {
		return
	}
	words, skips, covered, ended := readText(e.cpu, w, a)
	for i := range words {
		words[i].NoSpeechProb, words[i].Language = r.noSpeech, r.language
	}
	r.words = words
	if a.failed() || r.noSpeech > unsureNoSpeech {
		return // the gaps of a degenerate text are meaningless
	}
	for _, k := range skips {
		r.bare = append(r.bare, bare{before: k.Before, start: k.Start, end: k.End})
	}
	if after := w.Rest(covered + restSlack); ended && after.SpeechSeconds() >= restSeconds {
		_, end := w.Speech[len(w.Speech)-1].Seconds()
		r.bare = append(r.bare, bare{before: len(words), start: covered, end: end, rest: true})
	}
}

// assess joins a decode's text and measures the signs of failure. looped
// reports that a loop stopped the decode.
func assess(v vocabulary, tokens []token, looped bool) attempt {
	a := attempt{}
	eot, _ := v.ends()
	var text strings.Builder
	var pieces []decode.Token
	for _, t := range tokens {
		if t.id < eot {
			s := v.Text(t.id)
			text.WriteString(s)
			pieces = append(pieces, decode.Token{Text: s})
		}
		a.avgLogProb += float64(t.logp)
	}
	a.text = text.String()
	if strings.TrimSpace(a.text) == "" {
		return attempt{}
	}
	a.tokens = tokens
	a.avgLogProb /= float64(len(tokens))
	a.compression = textfile.CompressionRatio(a.text)
	_, a.looped = decode.Unloop(decode.Words(pieces))
	a.looped = a.looped || looped
	return a
}

// section is the text between two time marks, in seconds of the window.
type section struct {
	from, to float64
	first    int // index of the first text token
	tokens   []decode.Token
}

// sections divides a decode at its time marks; ended reports whether the last
// mark ends the text. seek is the window's start in the file, end its length.
func sections(v vocabulary, tokens []token, seek, end float64) (list []section, ended bool) {
	eot, begin := v.ends()
	open, text := section{}, 0
	for _, t := range tokens {
		switch {
		case t.id >= begin:
			at := min(float64(t.id-begin)*0.02, end)
			if len(open.tokens) > 0 {
				open.to = at
				list = append(list, open)
				ended = true
			}
			open = section{from: at, first: text}
		case t.id < eot:
			p := math.Exp(float64(t.logp))
			open.tokens = append(open.tokens, decode.Token{
				Text: v.Text(t.id), Probability: p, LogProb: float64(t.logp), Time: math.NaN(), Seek: seek, ID: t.id,
			})
			text++
			ended = false
		}
	}
	if len(open.tokens) > 0 {
		open.to = end
		list = append(list, open)
	}
	return list, ended
}

// passage is a section in words, with times of the file.
type passage struct {
	words    []decode.Word
	first    int // index of the first text token
	from, to float64
	passed   []decode.Skip // speech that the words pass over
}

// passages joins the words of the sections within speech.
func passages(w decode.Window, list []section, end float64) (all []passage) {
	var jumps int
	var passed float64
	for i, s := range list {
		text := decode.Words(s.tokens)
		if len(text) == 0 {
			continue
		}
		if s.to-s.from < float64(len(text))*0.04 { // too fast for speech: the end mark is wrong
			to := end
			if i+1 < len(list) {
				to = max(list[i+1].from, s.to)
			}
			s.to = to
		}
		from, to := w.Time(s.from), w.Time(s.to)
		if silent(w.Speech, from, to) {
			continue // text without speech: invented
		}
		p := passage{text, s.first, from, to, decode.Skipped(text, from, to, w.Speech)}
		for _, k := range p.passed {
			passed += k.End - k.Start
			jumps++
		}
		all = append(all, p)
	}
	if jumps > 1 && passed > w.SpeechSeconds()/2 {
		for i := range all {
			all[i].passed = nil // the text skipped no sentence: the sound has few words
		}
	}
	return all
}

// readText turns a decode into words with times of the file. skips lists the
// speech without words, covered is the end of the text, and ended reports
// whether that end is known, from a time mark or the last word's time.
func readText(v vocabulary, w decode.Window, a attempt) (words []decode.Word, skips []decode.Skip, covered float64, ended bool) {
	end := float64(w.Len()) / audio.SampleRate
	list, ended := sections(v, a.tokens, w.Time(0), end)
	times := a.times
	for _, p := range passages(w, list, end) {
		if times == nil {
			p.share(w.Speech)
		} else {
			p.put(times[:len(p.words)], w)
			times = times[len(p.words):]
		}
		for _, k := range p.passed {
			k.Before += len(words)
			skips = append(skips, k)
		}
		words = append(words, p.words...)
		covered = p.to
	}
	if !ended && a.times != nil && len(words) > 0 {
		covered, ended = words[len(words)-1].End, true
	}
	for i := range words {
		words[i].Temperature = a.temperature
	}
	return words, skips, covered, ended
}

// share spreads the words over the passage in proportion to their letters.
func (p *passage) share(speech []audio.Span) {
	first, from := 0, p.from
	for _, k := range append(slices.Clip(p.passed), decode.Skip{Before: len(p.words), Start: p.to}) {
		decode.Align(p.words[first:k.Before], from, k.Start, speech)
		first, from = k.Before, k.End
	}
	for i := range p.words {
		p.words[i].Interpolated = true
	}
}

// put sets the words' measured times. Speech between two words is skipped.
func (p *passage) put(times []wordtimes.Time, w decode.Window) {
	p.passed = nil
	var passed float64
	for i, t := range times {
		p.words[i].Start, p.words[i].End = t.Start, t.End
		from := p.from
		if i > 0 {
			from = times[i-1].End
		}
		for _, s := range w.Speech {
			start, end := s.Seconds()
			if start, end = max(start, from), min(end, t.Start); end-start >= decode.LeastSkipped {
				p.passed = append(p.passed, decode.Skip{Before: i, Start: start, End: end})
				passed += end - start
			}
		}
	}
	if len(p.passed) > 1 && passed > w.SpeechSeconds()/2 {
		p.passed = nil
	}
}

// silent reports whether no speech is within 0.2 s of a stretch.
func silent(speech []audio.Span, from, to float64) bool {
	return !slices.ContainsFunc(speech, func(s audio.Span) bool {
		a, b := s.Seconds()
		return a < to+0.2 && b > from-0.2
	})
}
