// Package align finds out when each word of a known text is spoken. It takes the
// log posteriors of a CTC model and looks for the most likely way to write the
// text with the model's tokens (Viterbi over a lattice of tokens with optional
// blanks).
//
// Words that the model's tokens cannot spell (numbers, signs, other scripts)
// stand for any speech; words that are not in the sound are left out, and sound
// that is in no word is reported. Hours are aligned in parts: what the model
// itself recognizes is compared with the text, and where both agree they are
// anchored to each other.
//
// The package needs no model and no native library; asr/onnx provides one.
package align

import (
	"context"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/ctc"
	"github.com/otograph/otograph/internal/decode"
)

// Model is a recognizer with a CTC output. asr/onnx.Engine is one.
type Model interface {
	// Vocabulary returns the texts of the model's tokens.
	Vocabulary() (Vocabulary, error)
	// Listen runs the model over the speech of a recording and returns what it
	// heard in each window, in order of time.
	Listen(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) ([]Heard, error)
}

// Vocabulary lists the tokens of a CTC model.
type Vocabulary struct {
	// Tokens are the texts of all tokens by their numbers: a space where a word
	// begins, nothing for the blank and other tokens without text.
	Tokens []string
	// Blank is the number of the blank.
	Blank int
}

// Heard is the output of a model for one window.
type Heard struct {
	// Pieces are the stretches of the file (samples at 16 kHz) that make up the
	// window, one right after the other, in order.
	Pieces []audio.Span
	Rows   *Rows
	// Words are the words that the model recognized, in order.
	Words []HeardWord
	// Spotted are the hotwords that the model heard, whether or not they are among
	// Words, in order.
	Spotted []Spotted
}

// time returns the time of the file, in seconds, for a time of the window.
func (h *Heard) time(seconds float64) float64 { return decode.Window{Pieces: h.Pieces}.Time(seconds) }

// Spotted is a hotword that a model heard.
type Spotted struct {
	Text string // as it was given
	// First and Last are the rows of its first and its last token.
	First, Last int
	// LogProb is how its posteriors compare with the best ones: the logarithm of the
	// quotient, for each letter.
	LogProb float64
}

// HeardWord is a recognized word and the row of its first token.
type HeardWord struct {
	Text string
	Row  int
}

// Options configures an alignment.
type Options struct {
	// Language is the text's language, "" for one that the model knows itself.
	Language string
	// Hotwords are the words that Transcript looks for in the sound; it puts
	// those that it finds into the text.
	Hotwords []string
	// Parallel is how many windows and sections are processed in parallel; 0 is
	// 1. The result does not depend on it.
	Parallel int
	// Gate, if not nil, shares a number of cores with others.
	Gate asr.Gate
	// Progress, if not nil, is called with the seconds of speech heard so far
	// and in all.
	Progress func(done, total float64)
}

// Word is a word of the text with its place in the sound.
type Word struct {
	// Text is the word as written, with its punctuation.
	Text string
	// Start and End are seconds from the beginning of the file. A word that is
	// Missing has the place where it would be: both are the end of the word
	// before.
	Start, End float64
	// Probability is the geometric mean of the model's posteriors of the word's
	// tokens, 0 to 1; 0 for words that are Missing and for those that the
	// tokens cannot spell.
	Probability float64
	// Missing reports that the word was not found in the sound.
	Missing bool
	// Wild reports that the word is not spelled by the model's tokens: it has
	// the place of some speech between its neighbors.
	Wild bool
}

// Extra is speech that is not in the text.
type Extra struct {
	// Start and End are seconds from the beginning of the file.
	Start, End float64
	// Text is what the model recognized there.
	Text string
}

// Alignment is a text laid onto a recording.
type Alignment struct {
	// Words are all words of the text, in order.
	Words []Word
	// Extra is speech that belongs to no word, in order of time.
	Extra []Extra
	// Passes is how many windows the model ran over.
	Passes int
	// Score is how well text and sound agree, 0 to 1: the sum of the
	// probabilities of all words that could be spelled over the number of those
	// words and of the words recognized outside of the text. The right text has
	// a Score near the model's accuracy, another text has one near 0.
	Score float64
}

// Words lays the words of a text, as Split divides one, onto the speech of a recording
// (samples at 16 kHz, in order, not overlapping).
func Words(ctx context.Context, m Model, pcm *audio.PCM, speech []audio.Span, texts []string, opt Options) (*Alignment, error) {
	r := recording{pcm, speech}
	heard, err := r.listen(ctx, m, opt)
	if err != nil {
		return nil, err
	}
	return r.lay(ctx, m, heard, texts, opt)
}

// recording is the sound that a text is laid onto.
type recording struct {
	pcm    *audio.PCM
	speech []audio.Span
}

func (r recording) listen(ctx context.Context, m Model, opt Options) ([]Heard, error) {
	return m.Listen(ctx, r.pcm, r.speech, asr.Options{
		Language: opt.Language, Hotwords: opt.Hotwords, Parallel: opt.Parallel, Gate: opt.Gate, Progress: opt.Progress,
	})
}

// lay is Words for windows that the model has heard.
func (r recording) lay(ctx context.Context, m Model, heard []Heard, texts []string, opt Options) (*Alignment, error) {
	vocab, err := tokensOf(m)
	if err != nil {
		return nil, err
	}
	t := newTrack(heard, prepare(texts, opt.Language, vocab), vocab)
	if err := t.lay(ctx, opt); err != nil {
		return nil, err
	}
	a := t.alignment(r.pcm, r.speech)
	a.Passes = len(heard)
	return a, ctx.Err()
}

// tokensOf returns the tokens of a model in the form that texts are spelled with.
func tokensOf(m Model) (*ctc.Vocabulary, error) {
	v, err := m.Vocabulary()
	if err != nil {
		return nil, err
	}
	return ctc.NewVocabulary(v.Tokens, v.Blank), nil
}
