// Package align finds the time of each word of a known text in a recording.
// From the log posteriors of a CTC model, it computes the most likely way to
// write the text (Viterbi over a lattice of tokens with optional blanks).
//
// Words that the tokens cannot spell (numbers, signs, other scripts) match any
// speech. Words that are not spoken are marked as missing, and speech outside
// of the text is reported. Long recordings are aligned in parts: where the
// model's own transcript agrees with the text, words become anchors.
//
// The package needs no model and no native library; asr/onnx provides a model.
package align

import (
	"context"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
)

// Model is a recognizer with a CTC output. asr/onnx.Engine is one.
type Model interface {
	// Vocabulary returns the texts of the model's tokens.
	Vocabulary() (Vocabulary, error)
	// Listen runs the model over the speech of a recording and returns its
	// output for each window, in order of time.
	Listen(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) ([]Recognition, error)
}

// Vocabulary lists the tokens of a CTC model.
type Vocabulary struct {
	// Tokens are the texts of all tokens by number: a space at the beginning of
	// a word, "" for the blank and other tokens without text.
	Tokens []string
	// Blank is the number of the blank token.
	Blank int
}

// Recognition is the output of a model for one window.
type Recognition struct {
	// Pieces are the stretches of the file (samples) that the window joins.
	Pieces []audio.Span
	Rows   *Rows
	// Words are the words that the model recognized, in order.
	Words []RecognizedWord
	// Spotted are the hotwords that the model detects in the sound, in order,
	// even if Words lacks them.
	Spotted []Spotted
}

// time converts a time of the window to a time of the file, in seconds.
func (h *Recognition) time(seconds float64) float64 {
	return decode.Window{Pieces: h.Pieces}.Time(seconds)
}

// Spotted is a hotword that the model detects in the sound: its text, the rows
// of its first and last token, and the logarithm of the ratio of its posteriors
// and the best ones, per letter.
type Spotted = ctc.Spotted

// RecognizedWord is a recognized word and the row of its first token.
type RecognizedWord struct {
	Text string
	Row  int
}

// Options configures an alignment.
type Options struct {
	// Language is the text's language; "" if the model detects it.
	Language string
	// Hotwords are the words that Transcript searches for and inserts.
	Hotwords []string
	// Parallel is the number of windows and sections processed in parallel; 0
	// is 1. The result does not depend on it.
	Parallel int
	// Gate, if not nil, limits the number of cores shared with other work.
	Gate asr.Gate
	// Progress, if not nil, gets the seconds of speech processed and in total.
	Progress func(done, total float64)
}

// Word is a word of the text with its time in the recording.
type Word struct {
	// Text is the word as written, with its punctuation.
	Text string
	// Start and End are seconds from the beginning of the file. For a Missing
	// word, both are the end of the word before it.
	Start, End float64
	// Probability is the geometric mean of the posteriors of its tokens, 0 to 1;
	// 0 for Missing words and for words that the tokens cannot spell.
	Probability float64
	// Missing reports that the word was not found in the sound.
	Missing bool
	// Wild reports that the model's tokens do not spell the word: it is aligned
	// with any speech between its neighbors.
	Wild bool
}

// Extra is speech that is not in the text.
type Extra struct {
	// Start and End are seconds from the beginning of the file.
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	// Text is the text recognized there.
	Text string `json:"text"`
}

// Alignment is a text aligned with a recording.
type Alignment struct {
	// Words are all words of the text, in order.
	Words []Word
	// Extra is speech that belongs to no word, in order of time.
	Extra []Extra
	// Passes is the number of windows that the model processed.
	Passes int
	// Score measures the agreement of text and sound, 0 to 1: the sum of the
	// probabilities of the words that the tokens can spell, divided by the
	// number of these and of the words spoken outside of the text. The right
	// text has a Score near the model's accuracy, a wrong text one near 0.
	Score float64
}

// Words aligns the words of a text, as returned by Split, with the speech of a
// recording (samples at 16 kHz, in order, without overlap).
func Words(ctx context.Context, m Model, pcm *audio.PCM, speech []audio.Span, texts []string, opt Options) (*Alignment, error) {
	vocab, err := tokensOf(m)
	if err != nil {
		return nil, err
	}
	r := recording{pcm, speech}
	windows, err := r.listen(ctx, m, opt)
	if err != nil {
		return nil, err
	}
	return r.lay(ctx, vocab, windows, texts, opt)
}

// recording is the sound that a text is aligned with.
type recording struct {
	pcm    *audio.PCM
	speech []audio.Span
}

func (r recording) listen(ctx context.Context, m Model, opt Options) ([]Recognition, error) {
	return m.Listen(ctx, r.pcm, r.speech, asr.Options{
		Language: opt.Language, Hotwords: opt.Hotwords, Parallel: opt.Parallel, Gate: opt.Gate, Progress: opt.Progress,
	})
}

// lay is Words for windows that the model has already processed.
func (r recording) lay(ctx context.Context, vocab *ctc.Vocabulary, windows []Recognition, texts []string, opt Options) (*Alignment, error) {
	t := newTrack(windows, prepare(texts, vocab), vocab)
	if err := t.lay(ctx, opt); err != nil {
		return nil, err
	}
	a := t.alignment(r.pcm, r.speech)
	a.Passes = len(windows)
	return a, ctx.Err()
}

// tokensOf returns a model's tokens in the form used to spell texts.
func tokensOf(m Model) (*ctc.Vocabulary, error) {
	v, err := m.Vocabulary()
	if err != nil {
		return nil, err
	}
	return ctc.NewVocabulary(v.Tokens, v.Blank), nil
}
