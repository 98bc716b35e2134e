package spec

// ASRStats counts the work behind a transcript. Counts do not depend on how many
// windows ran at once.
type ASRStats struct {
	// Windows is how many windows the speech was packed into.
	Windows int
	// EncoderPasses counts runs of the acoustic encoder (a batch of N counts N).
	EncoderPasses int
	// DecoderSteps counts evaluations of the decoder, the prompt's included;
	// 0 for recognizers that have none.
	DecoderSteps int
	// Fallbacks counts decodes repeated at a higher temperature.
	Fallbacks int
	// Retries counts windows encoded again with the full context.
	Retries int
	// Continued counts decodes of a window's rest after its text ended early.
	Continued int
	// Skipped counts decodes of speech that the text around it had passed over.
	Skipped int
	// Discarded counts windows whose text was dropped as not spoken.
	Discarded int
	// Loops counts decodes that the loop guard ended.
	Loops int
}

// Add adds the counts of o to s.
func (s *ASRStats) Add(o ASRStats) {
	s.Windows += o.Windows
	s.EncoderPasses += o.EncoderPasses
	s.DecoderSteps += o.DecoderSteps
	s.Fallbacks += o.Fallbacks
	s.Retries += o.Retries
	s.Continued += o.Continued
	s.Skipped += o.Skipped
	s.Discarded += o.Discarded
	s.Loops += o.Loops
}
