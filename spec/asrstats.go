package spec

import "reflect"

// ASRStats counts the work for a transcript. The counts do not depend on how
// many windows ran in parallel.
type ASRStats struct {
	// Windows is the number of windows that the speech was packed into.
	Windows int
	// EncoderPasses counts runs of the acoustic encoder (a batch of N counts
	// N). It exceeds Windows by at most a quarter, rounded up, and by one for
	// each window that was divided because it contains two languages.
	EncoderPasses int
	// Asked counts the passages whose language was identified separately, each
	// by an encoder pass that EncoderPasses does not include.
	Asked int
	// AlignmentPasses counts the windows that a CTC model processed to time the
	// words of the standard tier; EncoderPasses does not include them.
	AlignmentPasses int
	// DecoderSteps counts evaluations of the decoder, including the prompt's; 0
	// for recognizers without a decoder.
	DecoderSteps int
	// Fallbacks counts texts decoded again at a higher temperature.
	Fallbacks int
	// Unprompted counts windows decoded again without their prompt.
	Unprompted int
	// Continued counts remainders of windows decoded after an early end.
	Continued int
	// Skipped counts stretches of speech that were decoded because the
	// surrounding text had skipped them.
	Skipped int
	// Untried counts failed windows, remainders and stretches that were not
	// repeated because the budget of encoder passes was exhausted.
	Untried int
	// Discarded counts windows whose text was dropped as not spoken.
	Discarded int
	// Loops counts decodes that were stopped by the loop guard.
	Loops int
}

// Add adds the counts of o to s.
func (s *ASRStats) Add(o ASRStats) {
	to := reflect.ValueOf(s).Elem()
	for field, n := range reflect.ValueOf(o).Fields() {
		sum := to.FieldByIndex(field.Index)
		sum.SetInt(sum.Int() + n.Int())
	}
}

// CascadeStats counts the segments that the standard tier decoded again because
// the optimized tier's text was in a language other than the recording's or had
// low confidence. All counts are 0 without a cascade.
type CascadeStats struct {
	// Segments and Seconds count the whole transcript and its speech.
	Segments int
	Seconds  float64
	// Doubtful and DoubtfulSeconds count the segments that were decoded again.
	Doubtful        int
	DoubtfulSeconds float64
	// Hearings is how many runs of segments had their language identified.
	Hearings int
	// Replaced is the number of runs of doubtful segments that got a new text.
	Replaced int
	// ASR counts the work of the standard tier.
	ASR ASRStats
	// Took is the wall-clock time of the cascade, in seconds.
	Took float64
}

// Share returns the fraction of the speech that was decoded again, 0 to 1.
func (s CascadeStats) Share() float64 {
	if s.Seconds == 0 {
		return 0
	}
	return s.DoubtfulSeconds / s.Seconds
}

// Add adds the counts and times of o to s.
func (s *CascadeStats) Add(o CascadeStats) {
	s.Segments += o.Segments
	s.Seconds += o.Seconds
	s.Doubtful += o.Doubtful
	s.DoubtfulSeconds += o.DoubtfulSeconds
	s.Hearings += o.Hearings
	s.Replaced += o.Replaced
	s.ASR.Add(o.ASR)
	s.Took += o.Took
}
