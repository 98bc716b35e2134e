package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/spec"
)

// arrival is an event of a live session with the time at which it came, in
// seconds after the beginning of the recording.
type arrival struct {
	at float64
	live.Event
}

// latencies are in seconds. A report has their percentiles 50, 95 and 99.
type latencies []float64

func (l latencies) percentiles() (p [3]float64) {
	if len(l) > 0 {
		p = [3]float64{median(l), percentileOf(l, 95), percentileOf(l, 99)}
	}
	return p
}

// MarshalJSON implements json.Marshaler.
func (l latencies) MarshalJSON() ([]byte, error) {
	p := l.percentiles()
	return json.Marshal(map[string]float64{"count": float64(len(l)), "p50": p[0], "p95": p[1], "p99": p[2]})
}

func (l latencies) String() string {
	p := l.percentiles()
	return fmt.Sprintf("%.2f, %.2f, %.2f s", p[0], p[1], p[2])
}

// score adds a session on a recording, of which offline is the result as a
// whole. The ends of words are from the manifest, or else from the offline
// result.
func (l *liveLevel) score(it Item, offline, res *otograph.Result, list []arrival) {
	language := cmp.Or(it.Language, offline.Language)
	truth := it.Words
	if len(truth) == 0 {
		_, truth = timedTexts(offline)
	}
	texts := map[int][]arrival{} // by utterance, the last one the Final
	var shown []TimedText        // the words of the Finals; a word's end is the time at which it came first
	for _, a := range list {
		if a.Kind == spec.LiveSpeechStopped || a.Kind == spec.LivePartial || a.Kind == spec.LiveFinal {
			texts[a.Utterance] = append(texts[a.Utterance], a)
		}
		if a.Kind == spec.LiveFinal {
			shown = append(shown, l.final(language, texts[a.Utterance])...)
			end := 0.0
			for _, w := range truth {
				if w.Start < a.End && w.End > a.Start {
					end = max(end, w.End)
				}
			}
			if end > 0 {
				l.AfterWord = append(l.AfterWord, a.at-end)
			}
		}
	}
	ref, spoken := unitsOf(language, truth)
	hyp, written := unitsOf(language, shown)
	edits, _ := scores.Align(spoken, written) // nil if too long
	for _, e := range edits {
		if e.Reference >= 0 && e.Hypothesis >= 0 && spoken[e.Reference] == written[e.Hypothesis] {
			l.Interim = append(l.Interim, hyp[e.Hypothesis].End-ref[e.Reference].End)
		}
	}
	for result, sum := range map[*otograph.Result]*WordErrors{res: &l.Errors, offline: &l.Offline} {
		if s := scoreResult(it, withoutIgnored(it, result), scoreOptions{}); s.Words != nil {
			*sum = sum.Add(*s.Words)
		}
	}
}

// final adds the texts of an utterance, and returns the words of the last one.
func (l *liveLevel) final(language string, texts []arrival) (shown []TimedText) {
	last := texts[len(texts)-1]
	words := make([][]string, len(texts))
	var before, sentences []string
	for _, g := range last.Segments {
		sentences = append(sentences, Units(language, g.Text)...)
	}
	for i, a := range texts {
		if a.Kind == spec.LiveSpeechStopped {
			l.AfterStop = append(l.AfterStop, last.at-a.at)
			continue
		}
		words[i] = Units(language, a.Text)
		next := words[i]
		if a.Kind == spec.LiveFinal { // the final text has words that its sentences lack
			next = sentences
		}
		e := CompareWords(before, next)
		l.Changed += e.Substitutions + e.Deletions
		before = next
	}
	l.Words += len(sentences)
	for j, word := range words[len(words)-1] {
		first := slices.IndexFunc(words, func(text []string) bool { return j < len(text) && text[j] == word })
		shown = append(shown, TimedText{End: texts[first].at, Text: word})
	}
	return shown
}
