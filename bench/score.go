package bench

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/spec"
)

// itemScore is the accuracy of one result. Fields are nil if the manifest has
// no reference or the run did not compute them.
type itemScore struct {
	Words    *WordErrors `json:"words,omitempty"`
	Verbatim *WordErrors `json:"verbatim,omitempty"` // of the original texts, split at spaces
	Turns    *DER        `json:"turns,omitempty"`
	// TurnsBy holds the scores without a collar, without overlapping speech,
	// and without both, if these differ from Turns.
	TurnsBy   map[string]*DER `json:"turns_by,omitempty"`
	Meeting   *meetingScore   `json:"meeting,omitempty"`
	Keywords  *scores.Counts  `json:"keywords,omitempty"`
	Speakers  *speakerCount   `json:"speakers,omitempty"`
	Language  *languageScore  `json:"language,omitempty"`
	Events    *scores.Counts  `json:"events,omitempty"`
	Sentences *TimeErrors     `json:"sentence_times,omitempty"`
	WordTimes *TimeErrors     `json:"word_times,omitempty"`
}

// speakerCount is a number of speakers with its expected value (Reference) and
// its recognized one (Hypothesis).
type speakerCount struct {
	Reference  int `json:"reference"`
	Hypothesis int `json:"found"`
	// Probability is the probability stated for Hypothesis; nil without one.
	Probability *float64 `json:"probability,omitempty"`
}

// languageScore is a language with its expected value (Reference) and its
// recognized one (Hypothesis).
type languageScore struct {
	Reference  string `json:"reference"`
	Hypothesis string `json:"found"`
}

// scoreOptions configures the scoring of a result.
type scoreOptions struct {
	// DER configures the scoring of turns.
	DER DEROptions
	// EventClasses are the classes that count; nil means all.
	EventClasses []string
	// Normalizer, if it has a name, converts both texts to a common form, which
	// is then split at spaces; the zero value compares Units.
	Normalizer scores.Normalizer
	// Keywords are words or phrases to count in both texts.
	Keywords []string
	// LanguageGiven is set if the run got the language: it is not scored.
	LanguageGiven bool
}

// scoreResult compares a result with the references of its recording. A text is
// scored in the units of the reference's language or, if the manifest does not
// name it, of the detected language.
func scoreResult(item Item, res *otograph.Result, opt scoreOptions) itemScore {
	var s itemScore
	language := cmp.Or(item.Language, res.Language)
	if res.Ran.ASR {
		sentences, words := timedTexts(res)
		text := ""
		for _, sentence := range sentences {
			text += sentence.Text + "\n"
		}
		if item.Text != nil {
			s.scoreWords(language, referenceOf(item, opt.Normalizer, language, text), text, opt)
		}
		s.Meeting = scoreMeeting(item, res, language, opt.Normalizer)
		if item.Language != "" && !opt.LanguageGiven {
			s.Language = &languageScore{item.Language, res.Language}
		}
		if len(item.Sentences) > 0 {
			s.Sentences = new(scoreSentenceTimes(item.Sentences, sentences))
		}
		if len(item.Words) > 0 && len(words) > 0 {
			if times, ok := ScoreWordTimes(language, item.Words, words); ok {
				s.WordTimes = &times
			}
		}
	}
	if res.Ran.Diarize {
		if item.Turns != nil {
			s.scoreTurns(item, res.DiarizeSegments, opt.DER)
		}
		if item.Speakers != nil {
			s.Speakers = &speakerCount{*item.Speakers, res.NumSpeakers, res.NumSpeakersProbability}
		}
	}
	if res.Ran.AudioEvents && item.Events != nil {
		s.Events = new(scoreEvents(item.Events, res.AudioEvents, opt.EventClasses))
	}
	return s
}

// referenceOf returns the text of an item's reference, with the alternatives of
// NIST that suit a hypothesis best.
func referenceOf(item Item, n scores.Normalizer, language, hypothesis string) string {
	if item.Marked == "" {
		return *item.Text
	}
	return scores.Resolve(item.Marked, hypothesis, func(text string) []string { return normalizedUnits(n, language, text) })
}

// withoutIgnored leaves out the words in the times that the reference does not
// score, and the segments without words whose middle is there, as sclite does.
func withoutIgnored(item Item, res *otograph.Result) *otograph.Result {
	if len(item.Ignored) == 0 {
		return res
	}
	ignored := func(start, end float64) bool {
		middle := (start + end) / 2
		return end > start && slices.ContainsFunc(item.Ignored, func(s [2]float64) bool { return s[0] <= middle && middle < s[1] })
	}
	out := *res
	out.Segments = nil
	for _, g := range res.Segments {
		if len(g.Words) == 0 && ignored(g.Start, g.End) {
			continue
		}
		words := slices.DeleteFunc(slices.Clone(g.Words), func(w otograph.Word) bool { return ignored(w.Start, w.End) })
		if len(words) < len(g.Words) {
			var text []string
			for _, w := range words {
				text = append(text, strings.TrimSpace(w.Word))
			}
			g.Words, g.Text = words, strings.Join(text, " ")
		}
		out.Segments = append(out.Segments, g)
	}
	return &out
}

func (s *itemScore) scoreWords(language, reference, hypothesis string, opt scoreOptions) {
	n := opt.Normalizer
	ref, hyp := normalizedUnits(n, language, reference), normalizedUnits(n, language, hypothesis)
	s.Words = new(CompareWords(ref, hyp))
	if len(opt.Keywords) > 0 {
		var keywords [][]string
		for _, k := range opt.Keywords {
			keywords = append(keywords, normalizedUnits(n, language, k))
		}
		s.Keywords = new(scores.Keywords(ref, hyp, keywords))
	}
	if spacedLanguage(language) {
		s.Verbatim = new(CompareWords(strings.Fields(reference), strings.Fields(hypothesis)))
	}
}

// scoreTurns compares turns, also without collar or overlapping speech.
func (s *itemScore) scoreTurns(item Item, hypothesis []SpeakerTurn, opt DEROptions) {
	s.Turns = new(scoreTurnsWithin(item.Turns, hypothesis, item.Evaluated, opt))
	s.TurnsBy = map[string]*DER{}
	for _, v := range turnVariants {
		if other := v.of(opt); other != opt {
			d := scoreTurnsWithin(item.Turns, hypothesis, item.Evaluated, other)
			d.Mapping = nil
			s.TurnsBy[v.key] = &d
		}
	}
}

// turnVariants lists the other ways of scoring turns.
var turnVariants = []struct {
	key, name string
	of        func(DEROptions) DEROptions
}{
	{"no_collar", "no collar", func(o DEROptions) DEROptions { return DEROptions{SkipOverlap: o.SkipOverlap} }},
	{"no_overlap", "no overlap", func(o DEROptions) DEROptions { return DEROptions{Collar: o.Collar, SkipOverlap: true} }},
	{"no_collar_no_overlap", "no collar, no overlap", func(DEROptions) DEROptions { return DEROptions{SkipOverlap: true} }},
}

func spacedLanguage(language string) bool { return language == "" || spec.Spaced(language) }

// normalizedUnits splits a text into the units for comparison after a
// normalizer: words, or the characters of languages without spaces.
func normalizedUnits(n scores.Normalizer, language, text string) []string {
	if n.Name == "" {
		return Units(language, text)
	}
	text = n.Text(language, text)
	if spacedLanguage(language) {
		return strings.Fields(text)
	}
	return strings.Split(strings.Join(strings.Fields(text), ""), "")
}

// scoreEvents compares the detected sounds of one recording with the actual
// ones, by segments, as the DCASE challenges define it: time is divided into
// seconds, and in each of them a class that is active in both lists is a hit,
// and one that is active in only one list is a miss or a false alarm.
//
// If classes are given, only those count, because a reference usually names
// some sounds and not others (speech, say, or a sound's parent class).
func scoreEvents(reference, hypothesis []spec.AudioEvent, classes []string) (out scores.Counts) {
	type cell struct {
		second int
		class  string
	}
	active := func(list []spec.AudioEvent) map[cell]bool {
		on := map[cell]bool{}
		for _, e := range list {
			if classes != nil && !slices.Contains(classes, e.Class) {
				continue
			}
			for s := int(math.Floor(e.Start)); float64(s) < e.End; s++ {
				on[cell{s, e.Class}] = true
			}
		}
		return on
	}
	ref, hyp := active(reference), active(hypothesis)
	for c := range hyp {
		if ref[c] {
			out.Hits++
		} else {
			out.FalseAlarms++
		}
	}
	out.Misses = len(ref) - out.Hits
	return out
}
