package stages

import (
	"context"
	"errors"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/texts"
	"github.com/otograph/otograph/models"
)

// doubt is a run of segments whose text should be decoded again.
type doubt struct {
	First, End int // indices of its segments, without End
	Speech     []audio.Span
	Language   string // of the text; "" where it is the recording's
}

// doubts returns the runs of segments in an unexpected language or with a
// confidence below the given one. among are the text's possible languages. A
// run covers the speech of its words, up to the middle of the gaps.
func doubts(segments []asr.Segment, speech []audio.Span, language string, among []string, below float64) []doubt {
	var list []doubt
	for i, s := range segments {
		d := doubt{First: i, End: i + 1, Language: texts.OtherLanguage(s.Text, language, among)}
		if d.Language == "" && (s.Confidence == nil || *s.Confidence >= below) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].End == i && list[n-1].Language == d.Language {
			list[n-1].End = i + 1
			continue
		}
		list = append(list, d)
	}
	kept := list[:0]
	for _, d := range list {
		from, to := segments[d.First].Start, segments[d.End-1].End
		low, high := 0.0, math.Inf(1)
		if d.First > 0 {
			low = (segments[d.First-1].End + from) / 2
		}
		if d.End < len(segments) {
			high = (to + segments[d.End].Start) / 2
		}
		for _, sp := range speech {
			start, end := sp.Seconds()
			start, end = max(start, low), min(end, high)
			if start < to && end > from && end > start {
				d.Speech = append(d.Speech, audio.Span{Start: int(start * audio.SampleRate), End: int(end * audio.SampleRate)})
			}
		}
		if len(d.Speech) > 0 {
			kept = append(kept, d)
		}
	}
	return kept
}

// languageChecks returns the maximum number of runs of a recording whose
// language the standard tier may detect: one, and one more for every two
// minutes of speech, which are four windows of 30 s.
func languageChecks(speech []audio.Span) int { return 1 + int(Seconds(speech)/120) }

// spokenOtherwise drops the runs whose sound is detected to be in their text's
// language: there the speaker changed the language, and the text is right. It
// asks the detector about at most may runs and drops the others; without a
// language detector it drops all. asked counts the runs.
func spokenOtherwise(ctx context.Context, detector asr.LanguageDetector, pcm *audio.PCM, list []doubt, may int) (kept []doubt, asked int, err error) {
	for _, d := range list {
		if d.Language != "" && d.Language != texts.UnknownLanguage {
			if detector == nil || asked == may {
				continue
			}
			asked++
			spoken, _, err := detector.DetectLanguage(ctx, pcm, d.Speech, asr.Detection{})
			switch {
			case errors.Is(err, asr.ErrNoLanguage):
				continue
			case err != nil:
				return nil, asked, err
			case spoken == d.Language:
				continue
			}
		}
		kept = append(kept, d)
	}
	return kept, asked, nil
}

// replace replaces the segments of runs for which again has a better text, and
// returns the number of replaced runs. A text is better if it is more
// confident, if one of the two has no confidence, or if only the old one is in
// an unexpected language. A run keeps its text if the new text extends beyond
// the run's speech, because words there belong to another run or segment.
func replace(segments []asr.Segment, list []doubt, again []asr.Segment, language string, among []string) ([]asr.Segment, int) {
	var out []asr.Segment
	at, n := 0, 0
	for _, d := range list {
		out = append(out, segments[at:d.First]...)
		at = d.End
		old := segments[d.First:d.End]
		fresh, whole := d.within(again)
		foreign := func(s asr.Segment) bool { return texts.OtherLanguage(s.Text, language, among) != "" }
		x, sure := confidence(fresh)
		y, known := confidence(old)
		better := !sure || !known || x > y
		mended := d.Language != "" && !slices.ContainsFunc(fresh, foreign)
		if len(fresh) == 0 || !whole || !mended && !better {
			out = append(out, old...)
			continue
		}
		out = append(out, fresh...)
		n++
	}
	return append(out, segments[at:]...), n
}

// within returns the segments in the run's speech, and whether none exceeds it.
func (d doubt) within(segments []asr.Segment) (inside []asr.Segment, whole bool) {
	const slack = 0.02 // seconds by which rounding can shift times
	from, _ := d.Speech[0].Seconds()
	_, to := d.Speech[len(d.Speech)-1].Seconds()
	whole = true
	for _, s := range segments {
		if s.End <= from+slack || s.Start >= to-slack {
			continue
		}
		inside = append(inside, s)
		whole = whole && s.Start >= from-slack && s.End <= to+slack
	}
	return inside, whole
}

// confidence returns the segments' mean confidence, weighted by their length.
func confidence(segments []asr.Segment) (mean float64, ok bool) {
	var letters float64
	for _, s := range segments {
		if s.Confidence == nil {
			return 0, false
		}
		n := float64(utf8.RuneCountInString(s.Text))
		mean += n * *s.Confidence
		letters += n
	}
	return mean / max(letters, 1), letters > 0
}

// calibrate sets the segments' confidences from their tokens' probabilities
// with the model's calibration.
func calibrate(t *asr.Transcript, m *models.Model) {
	if m == nil || m.Calibration == nil {
		return
	}
	for i := range t.Segments {
		t.Segments[i].Confidence = new(m.Calibration.Confidence(t.Segments[i].AvgLogProb))
	}
}
