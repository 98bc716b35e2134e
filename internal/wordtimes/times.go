package wordtimes

import "github.com/otograph/otograph/audio"

// Input is a window of sound whose text is decided.
type Input struct {
	// Scores are the raw cross-attention scores (before the softmax) of the alignment
	// heads: [head][token][encoder position of 20 ms]. The tokens are those that start
	// a text, ending in no-timestamps, then the text without time marks, then EOT.
	// They are overwritten.
	Scores [][][]float32
	// Prefix is the number of tokens before the text.
	Prefix int
	// Words are the words in order, none empty.
	Words []Word
	// Samples is the sound of the window at 16 kHz, without the silence that fills it up
	// to 30 s.
	Samples []float32
	// Speech is the speech in the window as samples of the window, in order.
	Speech []audio.Span
}

// Word says which tokens of the text spell a word: First to Last, indices into the
// text's tokens. Punctuation in tokens of its own is best left out: it takes the pause
// beside the word.
type Word struct{ First, Last int }

// Time is when a word is spoken, in seconds of the window.
type Time struct{ Start, End float64 }
