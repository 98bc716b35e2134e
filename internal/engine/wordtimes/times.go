package wordtimes

import "github.com/otograph/otograph/audio"

// Input is a window of sound and its decided text.
type Input struct {
	// Scores are the raw cross-attention scores (before the softmax) of the
	// alignment heads: [head][token][encoder position of 20 ms]. The tokens are
	// the tokens that start a text, ending in no-timestamps, then the text
	// without time marks, then EOT. The scores are overwritten.
	Scores [][][]float32
	// Prefix is the number of tokens before the text.
	Prefix int
	// Words are the words in order.
	Words []Word
	// Samples is the window's sound at 16 kHz, without padding.
	Samples []float32
	// Speech holds the spans of speech, in samples of the window, in order.
	Speech []audio.Span
}

// Word is the range of a word's tokens, indices First to Last, without separate
// punctuation, which attends to the pause next to the word.
type Word struct {
	Text        string
	First, Last int
}

// Time is the span in which a word is spoken, in seconds of the window.
type Time struct{ Start, End float64 }

// positionSamples is the number of samples per encoder position.
const positionSamples = audio.SampleRate / 50

// Times returns when each word is spoken. Words do not overlap and keep their
// order; each lies in speech and lasts 20 ms or more, and none spans a pause of
// more than 0.1 s. It returns nil if the speech is too short for the words.
func Times(in Input) []Time {
	s := newSharpener(in)
	if s == nil {
		return nil
	}
	begins := warp(attention(in.Scores, in.Prefix, positions(in, in.Scores)))
	s.place(begins)
	s.score()
	return s.times(begins)
}

// Positions returns the encoder positions with sound, which Scores needs.
func (in Input) Positions() int { return (len(in.Samples) + positionSamples - 1) / positionSamples }

// positions returns the number of encoder positions with sound.
func positions(in Input, scores [][][]float32) int { return min(in.Positions(), len(scores[0][0])) }
