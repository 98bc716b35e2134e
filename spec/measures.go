package spec

// Measures holds the recognizer's measures of a segment.
type Measures struct {
	// Seek is the start (in seconds of the recording) of the recognizer's
	// window in which the segment begins.
	Seek float64 `json:"seek"`
	// Tokens are the segment's token numbers, without time marks.
	Tokens []int32 `json:"tokens"`
	// Temperature is the decoder's; nil for a recognizer without a decoder.
	Temperature *float64 `json:"temperature"`
	// AvgLogProb is the mean natural logarithm of the tokens' probabilities.
	AvgLogProb float64 `json:"avg_logprob"`
	// NoSpeechProb is nil for a recognizer that doesn't estimate it.
	NoSpeechProb *float64 `json:"no_speech_prob"`
}
