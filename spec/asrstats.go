package spec

// ASRStats counts the work behind a transcript. Counts do not depend on how many
// windows ran at once.
type ASRStats struct {
	// Windows is how many windows the speech was packed into.
	Windows int
	// EncoderPasses counts runs of the acoustic encoder (a batch of N counts N). It
	// exceeds Windows by a quarter of them at most, rounded up, unless the options ask
	// for more than 8 samples a window, and by Unprompted.
	EncoderPasses int
	// AlignmentPasses counts the windows that a CTC model ran over to time the words
	// of the standard tier; they are not among EncoderPasses.
	AlignmentPasses int
	// DecoderSteps counts evaluations of the decoder, the prompt's included;
	// 0 for recognizers that have none.
	DecoderSteps int
	// Fallbacks counts texts decoded at a higher temperature than the one before.
	Fallbacks int
	// Unprompted counts windows decoded again without their prompt.
	Unprompted int
	// Retries counts windows encoded again with the full context.
	Retries int
	// Continued counts the rests of windows decoded after a text ended early.
	Continued int
	// Skipped counts stretches of speech decoded because the text around them had
	// passed over them.
	Skipped int
	// Untried counts failed windows, rests and stretches that the budget of repeated
	// encoder passes left as they were.
	Untried int
	// Discarded counts windows whose text was dropped as not spoken.
	Discarded int
	// Loops counts decodes that the loop guard ended.
	Loops int
}

// Add adds the counts of o to s.
func (s *ASRStats) Add(o ASRStats) {
	s.Windows += o.Windows
	s.EncoderPasses += o.EncoderPasses
	s.AlignmentPasses += o.AlignmentPasses
	s.DecoderSteps += o.DecoderSteps
	s.Fallbacks += o.Fallbacks
	s.Unprompted += o.Unprompted
	s.Retries += o.Retries
	s.Continued += o.Continued
	s.Skipped += o.Skipped
	s.Untried += o.Untried
	s.Discarded += o.Discarded
	s.Loops += o.Loops
}

// CascadeStats counts what the standard tier decoded again because the optimized
// tier's text was in another language than the recording, or not confident enough.
// All are 0 where there was no cascade.
type CascadeStats struct {
	// Segments and Seconds are those of the whole transcript, and of its speech.
	Segments int
	Seconds  float64
	// Doubtful and DoubtfulSeconds are how much of them was decoded again.
	Doubtful        int
	DoubtfulSeconds float64
	// Hearings is how many runs of segments the standard tier was asked the language of.
	Hearings int
	// Replaced is how many runs of doubtful segments got a new text.
	Replaced int
	// ASR counts the work of the standard tier.
	ASR ASRStats
	// Took is how long it all took by the clock, in seconds.
	Took float64
}

// Share is the part of the speech that was decoded again, 0 to 1.
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
