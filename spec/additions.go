package spec

// Additions holds what a run found in addition to the specification's result.
// It is separate, so that the specification's clients get the same result as
// before.
type Additions struct {
	// Measures has an entry for each segment, null if nothing was measured.
	Measures []*Measures `json:"measures,omitempty"`
	// Names are the speakers who were recognized by their voices.
	Names map[string]string `json:"names,omitempty"`
}

// The lengths of a known voice's recording, in seconds, and by how much an
// encoder's padding may exceed them.
const (
	ShortestVoice = 2
	LongestVoice  = 10
	VoiceSlack    = 0.1
)

// Measures holds what the recognizer measured for a segment.
type Measures struct {
	// Seek is the start (in seconds of the recording) of the recognizer's
	// window in which the segment begins.
	Seek float64 `json:"seek"`
	// Tokens are the segment's tokens in the recognizer's vocabulary, without
	// time marks.
	Tokens []int32 `json:"tokens"`
	// Temperature is the temperature at which the text was decoded; nil for a
	// recognizer without one.
	Temperature *float64 `json:"temperature"`
	// AvgLogProb is the mean natural logarithm of the tokens' probabilities.
	AvgLogProb float64 `json:"avg_logprob"`
	// NoSpeechProb is the no-speech probability; nil for a recognizer that
	// doesn't estimate it.
	NoSpeechProb *float64 `json:"no_speech_prob"`
}

// Additions returns the parts of the result that are not in its JSON form, or
// nil if there are none.
func (r *Result) Additions() *Additions {
	a := &Additions{Names: r.Names}
	for i, s := range r.Segments {
		if s.Measures == nil {
			continue
		}
		if a.Measures == nil {
			a.Measures = make([]*Measures, len(r.Segments))
		}
		a.Measures[i] = s.Measures
	}
	if a.Measures == nil && len(a.Names) == 0 {
		return nil
	}
	return a
}

// Add restores the parts returned by Additions to a result that was decoded
// from JSON. It does nothing if a is nil.
func (r *Result) Add(a *Additions) {
	if a == nil {
		return
	}
	r.Names = a.Names
	for i, m := range a.Measures[:min(len(a.Measures), len(r.Segments))] {
		r.Segments[i].Measures = m
	}
}
