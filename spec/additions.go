package spec

// Additions are what a run found beside the specification's result. They are kept
// apart from it, so that what the specification's clients get stays as it is.
type Additions struct {
	// Measures has an entry for each segment, null where nothing was measured.
	Measures []*Measures `json:"measures,omitempty"`
	// Names are the speakers who were recognized by their voices.
	Names map[string]string `json:"names,omitempty"`
}

// The lengths of a known voice's recording, in seconds, and by how much the padding
// of encoders may pass them.
const (
	ShortestVoice = 2
	LongestVoice  = 10
	VoiceSlack    = 0.1
)

// Measures are what the recognizer measured of a segment.
type Measures struct {
	// Seek is where in the recording (seconds) the window begins that the recognizer
	// was given and in which the segment begins.
	Seek float64 `json:"seek"`
	// Tokens are the segment's tokens in the recognizer's vocabulary, without time
	// marks.
	Tokens []int32 `json:"tokens"`
	// Temperature is what the text was decoded at, nil for a recognizer that has none.
	Temperature *float64 `json:"temperature"`
	// AvgLogProb is the mean natural logarithm of the tokens' probabilities.
	AvgLogProb float64 `json:"avg_logprob"`
	// NoSpeechProb is the probability that nobody speaks, nil for a recognizer that
	// does not tell.
	NoSpeechProb *float64 `json:"no_speech_prob"`
}

// Additions returns what the result has beside its JSON form, nil where there is
// nothing.
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

// Add puts back what Additions took from a result that was written as JSON and
// read again; nil adds nothing.
func (r *Result) Add(a *Additions) {
	if a == nil {
		return
	}
	r.Names = a.Names
	for i, m := range a.Measures[:min(len(a.Measures), len(r.Segments))] {
		r.Segments[i].Measures = m
	}
}
