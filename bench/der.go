package bench

import (
	"maps"
	"slices"

	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/bench/internal/scores"
)

// DEROptions configures the scoring of turns.
type DEROptions struct {
	// Collar is the number of seconds before and after every reference border
	// that are not scored (0.25 is usual).
	Collar float64
	// SkipOverlap excludes periods with several speakers in the reference.
	SkipOverlap bool
}

// DER holds the parts of a diarization error, all in seconds of speaker time:
// if two people talk simultaneously, a second counts twice.
type DER struct {
	Scored     float64           // scored reference speech
	Missed     float64           // reference speakers missing from the hypothesis
	FalseAlarm float64           // hypothesis speakers missing from the reference
	Confusion  float64           // speech assigned to the wrong speaker
	Mapping    map[string]string // hypothesis speaker → reference speaker, one to one
	// Speakers is the number of speakers in the scored reference, Jaccard the
	// sum of their Jaccard errors. A speaker's error is the missed and
	// false-alarm time over the time in which the speaker or its partner
	// speaks; 1 without a partner.
	Speakers int
	Jaccard  float64
}

// jer returns the Jaccard error rate of the second DIHARD challenge: the mean
// error of the reference's speakers, regardless of how long each of them
// speaks. It is 1 without speakers, as in pyannote.metrics.
func (d DER) jer() float64 {
	if d.Speakers == 0 {
		return 1
	}
	return d.Jaccard / float64(d.Speakers)
}

// Rate returns the diarization error rate: (missed + false alarm + confusion) /
// scored. It can exceed 1. Without scored speech it is 0, or 1 if the
// hypothesis has speech, as in pyannote.metrics.
func (d DER) Rate() float64 {
	wrong := d.Missed + d.FalseAlarm + d.Confusion
	if d.Scored == 0 {
		if wrong == 0 {
			return 0
		}
		return 1
	}
	return wrong / d.Scored
}

// add returns the sum of two recordings' errors, so that Rate weights them by
// length. It drops the mapping.
func (d DER) add(o DER) DER {
	return DER{
		Scored: d.Scored + o.Scored, Missed: d.Missed + o.Missed, FalseAlarm: d.FalseAlarm + o.FalseAlarm, Confusion: d.Confusion + o.Confusion,
		Speakers: d.Speakers + o.Speakers, Jaccard: d.Jaccard + o.Jaccard,
	}
}

// ScoreTurns compares a hypothesis with a reference as defined by NIST's
// md-eval: speakers are mapped one to one so that they agree for the longest
// time; then, at every instant, the larger number of speakers minus the number
// of correct ones is an error. It works on the exact borders, not on frames.
// Turns without length are ignored.
func ScoreTurns(reference, hypothesis []SpeakerTurn, opt DEROptions) DER {
	return scoreTurnsWithin(reference, hypothesis, nil, opt)
}

// scoreTurnsWithin is ScoreTurns for the evaluated times alone (all if nil). As
// in pyannote.metrics, the borders of these times have no collar.
func scoreTurnsWithin(reference, hypothesis []SpeakerTurn, evaluated []span, opt DEROptions) DER {
	ref, refNames := bySpeaker(reference)
	hyp, hypNames := bySpeaker(hypothesis)
	stretches := stretchesOf(ref, hyp, [][]span{collarsOf(reference, opt.Collar), unevaluated(evaluated, reference, hypothesis)}, opt.SkipOverlap)
	m := matchTurns(stretches, len(ref), len(hyp))
	d := DER{Mapping: make(map[string]string)}
	for r, h := range m.partner {
		if m.refTime[r] > 0 {
			d.Speakers++
		}
		if h >= 0 && m.together[r][h] > 0 {
			d.Mapping[hypNames[h]] = refNames[r]
			either := m.refTime[r] + m.hypTime[h] - m.together[r][h]
			d.Jaccard += (either - m.together[r][h]) / either
		} else if m.refTime[r] > 0 {
			d.Jaccard++
		}
	}
	for _, s := range stretches {
		correct := 0
		for _, r := range s.ref {
			if slices.Contains(s.hyp, m.partner[r]) {
				correct++
			}
		}
		nr, nh := len(s.ref), len(s.hyp)
		d.Scored += s.seconds * float64(nr)
		d.Missed += s.seconds * float64(max(nr-nh, 0))
		d.FalseAlarm += s.seconds * float64(max(nh-nr, 0))
		d.Confusion += s.seconds * float64(min(nr, nh)-correct)
	}
	return d
}

// stretch is a period without a change of speakers.
type stretch struct {
	seconds  float64
	ref, hyp []int // who speaks
}

// stretchesOf divides the scored time between neighboring borders.
func stretchesOf(ref, hyp, excluded [][]span, skipOverlap bool) (stretches []stretch) {
	var borders []float64
	for _, s := range slices.Concat(slices.Concat(ref, hyp, excluded)...) {
		borders = append(borders, s[0], s[1])
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	refAt, hypAt, excludedAt := speaking(ref), speaking(hyp), speaking(excluded)
	for i := 1; i < len(borders); i++ {
		middle, seconds := (borders[i-1]+borders[i])/2, borders[i]-borders[i-1]
		r, h := refAt(middle), hypAt(middle)
		if len(excludedAt(middle)) > 0 || skipOverlap && len(r) > 1 || len(r)+len(h) == 0 {
			continue
		}
		stretches = append(stretches, stretch{seconds, r, h})
	}
	return stretches
}

// turnMatch is a mapping between the speakers of both sides.
type turnMatch struct {
	refTime, hypTime []float64
	together         [][]float64
	partner          []int // per speaker of the reference, −1 for none
}

// matchTurns matches speakers so that they agree for the longest time. Speakers
// without scored time are excluded, so that it chooses the same as
// pyannote.metrics if several matches are best.
func matchTurns(stretches []stretch, refs, hyps int) turnMatch {
	m := turnMatch{refTime: make([]float64, refs), hypTime: make([]float64, hyps), together: make([][]float64, refs), partner: make([]int, refs)}
	for r := range m.together {
		m.together[r] = make([]float64, hyps)
		m.partner[r] = -1
	}
	for _, s := range stretches {
		for _, r := range s.ref {
			m.refTime[r] += s.seconds
			for _, h := range s.hyp {
				m.together[r][h] += s.seconds
			}
		}
		for _, h := range s.hyp {
			m.hypTime[h] += s.seconds
		}
	}
	rows, columns := positive(m.refTime), positive(m.hypTime)
	cost := make([][]float64, len(rows))
	for i, r := range rows {
		for _, h := range columns {
			cost[i] = append(cost[i], -m.together[r][h])
		}
	}
	for i, c := range scores.Assign(cost, len(columns)) {
		if c >= 0 {
			m.partner[rows[i]] = columns[c]
		}
	}
	return m
}

// positive returns the indices of positive times.
func positive(times []float64) (at []int) {
	for i, t := range times {
		if t > 0 {
			at = append(at, i)
		}
	}
	return at
}

// collarsOf returns the collars around the borders of all turns, including
// borders between two turns of one speaker.
func collarsOf(reference []SpeakerTurn, collar float64) (collars []span) {
	if collar <= 0 {
		return nil
	}
	for _, t := range reference {
		if t.End > t.Start {
			collars = append(collars, span{t.Start - collar, t.Start + collar}, span{t.End - collar, t.End + collar})
		}
	}
	return datasets.Union(collars)
}

type span = [2]float64 // a start and an end

// bySpeaker collects the turns of each speaker and merges their overlaps.
// Speakers are sorted by name.
func bySpeaker(turns []SpeakerTurn) (spans [][]span, names []string) {
	of := make(map[string][]span)
	for _, t := range turns {
		if t.End > t.Start {
			of[t.Speaker] = append(of[t.Speaker], span{t.Start, t.End})
		}
	}
	names = slices.Sorted(maps.Keys(of))
	for _, name := range names {
		spans = append(spans, datasets.Union(of[name]))
	}
	return spans, names
}

// speaking returns a function that finds the active speakers at increasing
// times.
func speaking(spans [][]span) func(time float64) (who []int) {
	rest := slices.Clone(spans)
	return func(time float64) (who []int) {
		for i := range rest {
			for len(rest[i]) > 0 && rest[i][0][1] <= time {
				rest[i] = rest[i][1:]
			}
			if len(rest[i]) > 0 && rest[i][0][0] <= time {
				who = append(who, i)
			}
		}
		return who
	}
}

// unevaluated returns the periods before the end of any turn that are not in
// the evaluated times; nil if all times are evaluated.
func unevaluated(evaluated []span, lists ...[]SpeakerTurn) (gaps []span) {
	if evaluated == nil {
		return nil
	}
	at := 0.0
	for _, e := range evaluated {
		gaps = append(gaps, span{at, e[0]})
		at = e[1]
	}
	end := at
	for _, t := range slices.Concat(lists...) {
		end = max(end, t.End)
	}
	return append(gaps, span{at, end})
}
