package otograph

import (
	"context"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/textlang"
	"github.com/otograph/otograph/models"
)

// CascadeBelow is the confidence below which the cascade decodes a segment of the
// optimized tier again: see docs/performance.md for how it was chosen.
const CascadeBelow = 0.85

// doubt is a run of segments whose text needs to be decoded again.
type doubt struct {
	first, end int // indices of its segments, end excluded
	speech     []audio.Span
	language   string // that the text is in, "" where it is in the recording's
}

// doubts returns the runs of segments that are in another language than they
// should be, or less confident than below. among are the languages that the
// text can be in. A run covers the speech that its segments have words in, up
// to the middle of the gaps to its neighbors.
func doubts(segments []asr.Segment, speech []audio.Span, language string, among []string, below float64) []doubt {
	var list []doubt
	for i, s := range segments {
		d := doubt{first: i, end: i + 1, language: textlang.Other(s.Text, language, among)}
		if d.language == "" && (s.Confidence == nil || *s.Confidence >= below) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].end == i && list[n-1].language == d.language {
			list[n-1].end = i + 1
			continue
		}
		list = append(list, d)
	}
	kept := list[:0]
	for _, d := range list {
		from, to := segments[d.first].Start, segments[d.end-1].End
		low, high := 0.0, math.Inf(1)
		if d.first > 0 {
			low = (segments[d.first-1].End + from) / 2
		}
		if d.end < len(segments) {
			high = (to + segments[d.end].Start) / 2
		}
		for _, sp := range speech {
			start, end := sp.Seconds()
			start, end = max(start, low), min(end, high)
			if start < to && end > from && end > start {
				d.speech = append(d.speech, audio.Span{Start: int(start * audio.SampleRate), End: int(end * audio.SampleRate)})
			}
		}
		if len(d.speech) > 0 {
			kept = append(kept, d)
		}
	}
	return kept
}

// spoken returns how long the speech lasts, in seconds.
func spoken(speech []audio.Span) (sum float64) {
	for _, sp := range speech {
		start, end := sp.Seconds()
		sum += end - start
	}
	return sum
}

// hearings returns how many runs of a recording the standard tier may be asked the
// language of: one, and one more for each two minutes of speech, which are four of
// its longest windows.
func hearings(speech []audio.Span) int { return 1 + int(spoken(speech)/120) }

// heardOtherwise drops the runs whose sound is detected to be in the language
// of their text: there the speaker changed the language, and the text is right
// to follow. It queries the detector about at most may runs and drops the
// others; asked is the number of queries.
func heardOtherwise(ctx context.Context, detector asr.LanguageDetector, pcm *audio.PCM, list []doubt, may int) (kept []doubt, asked int, err error) {
	for _, d := range list {
		if d.language != "" && d.language != textlang.Unknown {
			if asked == may {
				continue
			}
			asked++
			heard, _, err := detector.DetectLanguage(ctx, pcm, d.speech)
			if err != nil {
				return nil, asked, err
			}
			if heard == d.language {
				continue
			}
		}
		kept = append(kept, d)
	}
	return kept, asked, nil
}

// replaced returns the segments with those of the runs for which again has a better
// text, and the number of runs that got one. A text is better if it is more
// confident, or one of the two has no confidence, or only the old one is in another
// language than it should be. A run keeps its text if the new one extends beyond
// its speech, because the words there belong to another run or to a segment between.
func replaced(segments []asr.Segment, list []doubt, again []asr.Segment, language string, among []string) ([]asr.Segment, int) {
	var out []asr.Segment
	at, n := 0, 0
	for _, d := range list {
		out = append(out, segments[at:d.first]...)
		at = d.end
		old := segments[d.first:d.end]
		fresh, whole := d.within(again)
		foreign := func(s asr.Segment) bool { return textlang.Other(s.Text, language, among) != "" }
		mended := d.language != "" && !slices.ContainsFunc(fresh, foreign)
		if len(fresh) == 0 || !whole || !mended && !better(fresh, old) {
			out = append(out, old...)
			continue
		}
		out = append(out, fresh...)
		n++
	}
	return append(out, segments[at:]...), n
}

// within returns the segments that touch the run's speech, and whether all of them
// keep inside it.
func (d doubt) within(segments []asr.Segment) (inside []asr.Segment, whole bool) {
	const slack = 0.02 // seconds by which times are rounded
	from, _ := d.speech[0].Seconds()
	_, to := d.speech[len(d.speech)-1].Seconds()
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

// better reports whether one text is more confident than another.
func better(a, b []asr.Segment) bool {
	x, sure := confidence(a)
	y, known := confidence(b)
	return !sure || !known || x > y
}

// confidence is the mean of the segments, weighed by their length.
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
