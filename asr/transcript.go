// Package asr holds the types that every speech recognizer of the engine shares:
// the transcript, the options and the Transcriber interface. asr/whisper and
// asr/onnx are the recognizers themselves.
package asr

import (
	"context"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Word is one word of a transcript; for languages written without spaces
// (Chinese, Japanese, Thai and their like) it is one character.
type Word struct {
	// Text is the word as written, with its punctuation and without
	// surrounding spaces.
	Text string
	// Start and End are seconds from the beginning of the file. End is at
	// least 10 ms after Start, and words never go back in time.
	Start, End float64
	// Probability is the mean probability of the word's tokens, 0 to 1.
	Probability float64
	// Interpolated reports that Start and End were not measured: they are
	// interpolated by letters between times that were.
	Interpolated bool `json:",omitzero"`
	// Heard is the probability, 0 to 1, that the model that times the words gives
	// the word where it is; nil if none did, or if it can't spell the word.
	Heard *float64 `json:",omitempty"`
	// Doubtful reports that the sound speaks against the word: see spec.Word.
	Doubtful bool `json:",omitzero"`
	// Tokens is how many of its segment's tokens belong to the word.
	Tokens int `json:",omitzero"`
}

// Segment is a sentence or a part of one between two pauses.
type Segment struct {
	// Start and End are seconds from the beginning of the file.
	Start, End float64
	// Text is the segment as written, without surrounding spaces.
	Text string
	// Words are the words of Text in order; nil when the recognizer gives
	// none or Options.WordTimestamps is false.
	Words []Word
	// AvgLogProb is the mean natural logarithm of the tokens' probabilities.
	AvgLogProb float64
	// NoSpeechProb is the probability of no speech where the words are, 0 to 1,
	// as a mean over them: of the words' windows in asr/whisper, of the blank
	// where the tokens fire in asr/onnx; 0 if the recognizer does not report
	// it.
	NoSpeechProb float64
	// Tokens are the numbers of the segment's tokens in the recognizer's vocabulary,
	// without time marks; nil where they are not known.
	Tokens []int32 `json:",omitzero"`
	// Temperature is the highest that any of the segment was decoded at, and Seek
	// where in the file (seconds) the window begins in which the segment does.
	Temperature float64 `json:",omitzero"`
	Seek        float64 `json:",omitzero"`
	// Language is the code of the language that the text was decoded in; "" where
	// the recognizer has one language for all.
	Language string `json:",omitzero"`
	// Confidence is how much of the text is right, 0 to 1, by the calibration of the
	// recognizer's model; nil without one.
	Confidence *float64 `json:",omitempty"`
}

// Stats counts the work done for a transcript.
type Stats = spec.ASRStats

// Transcript is the result of recognizing a recording.
type Transcript struct {
	// Language is the language it was decoded in, as ISO 639-1 (or Whisper's
	// code where ISO 639-1 has none, such as "haw" and "yue").
	Language string
	// Segments are in order of time and do not overlap; empty when nothing
	// was said.
	Segments []Segment
	// Stats counts the work done.
	Stats Stats
	// Powerless are hotwords (Options.Hotwords) that change next to nothing.
	Powerless []string `json:",omitempty"`
	// Unspelled are hotwords that change nothing, because the model's vocabulary
	// cannot spell them.
	Unspelled []string `json:",omitempty"`
}

// Options configures a single transcription. The zero value, with a Language where
// one is required, decodes greedily and without word times; DefaultOptions returns the
// published defaults. Abilities lists the options that a recognizer honors.
type Options struct {
	// Language is a code that NormalizeLanguage returns. asr/whisper requires
	// it; asr/onnx takes "" for a model that tells the language itself.
	Language string
	// Languages are those that passages may be in, Language among them, where that
	// was detected rather than given; empty keeps every passage to Language.
	// asr/whisper honors it, on a CPU.
	Languages []string
	// BeamSize is the width of the beam search at temperature 0; 1 (or 0) is
	// greedy. Models with a CTC output keep twice as many prefixes; asr/onnx
	// searches at any temperature and takes 0 for the default of 5.
	BeamSize int
	// Temperature is where decoding starts: 0 searches, above 0 samples.
	Temperature float64
	// BestOf is how many samples are drawn at a Temperature above 0, the most
	// likely is kept; 0 is one. At most 20.
	BestOf int
	// Hotwords are words whose probability is raised.
	Hotwords []string
	// InitialPrompt precedes every window's text and steers its style.
	InitialPrompt string
	// Translate asks for the text in English, whatever Language is spoken. A
	// recognizer without Abilities.Translate refuses it.
	Translate bool
	// ConditionOnPrevious also gives each window the text of the one before.
	// Windows are then decoded one after the other, and an error may travel.
	ConditionOnPrevious bool
	// NoSpeechThreshold discards text where the no-speech probability exceeds it, 0 to
	// 1; 0 means the published 0.6, a negative value keeps all text. From 0.6 on
	// asr/whisper keeps text at up to 0.9 if its mean log probability is -1 or more, as
	// Whisper's published rule does. asr/onnx only reports the probability, in Segment.NoSpeechProb.
	NoSpeechThreshold float64
	// WordTimestamps asks for Segment.Words.
	WordTimestamps bool
	// Parallel is how many windows are decoded in parallel; 0 is 1. The text
	// does not depend on it.
	Parallel int
	// Gate, if not nil, is passed before each decode and left after it, so that
	// recognizers and whatever else computes share a number of cores.
	Gate Gate
	// Progress, if not nil, is called after each window with the seconds of
	// speech decoded so far and in total, never concurrently.
	Progress func(done, total float64)
	// Settled, if not nil, is called before Progress with the sentences that follow
	// those it was called with before, as soon as nothing can change them. Recognizers
	// that are done in no time may leave it.
	Settled func(sentences []Segment)
}

// Abilities lists which Options a recognizer honors; the others have no effect
// on it. Language, Parallel, Gate and Progress always apply.
type Abilities struct {
	// Beam is the widest beam that BeamSize can ask for; 0 for a recognizer that
	// does not search with a beam.
	Beam int
	// BeamForHotwords reports that it searches with a beam only where Hotwords are
	// given, and takes the best token at each step otherwise.
	BeamForHotwords bool
	// Temperature reports whether Temperature and BestOf make it sample.
	Temperature bool
	// Hotwords and InitialPrompt report whether it takes any.
	Hotwords, InitialPrompt bool
	// NoSpeech reports whether it knows Segment.NoSpeechProb.
	NoSpeech bool
	// Translate reports whether it can write English where another language is spoken.
	Translate bool `json:",omitzero"`
}

// Gate lets a bounded number of workers compute concurrently. A worker takes one core of it,
// also where it computes with several threads, of which there are at most Options.Parallel
// in all. golang.org/x/sync's semaphore.Weighted implements it.
type Gate interface {
	// Acquire waits for n cores; the error is that of ctx.
	Acquire(ctx context.Context, n int64) error
	// Release returns n cores.
	Release(n int64)
}

// Pass waits at the gate for one core and returns the function that releases
// it. Without a gate it returns immediately.
func (o Options) Pass(ctx context.Context) (leave func(), err error) {
	if o.Gate == nil {
		return func() {}, nil
	}
	if err := o.Gate.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { o.Gate.Release(1) }, nil
}

// defaultNoSpeechThreshold is Whisper's published no-speech threshold.
const defaultNoSpeechThreshold = 0.6

// DiscardAbove returns the no-speech probability above which text is discarded:
// NoSpeechThreshold with its default.
func (o Options) DiscardAbove() float64 {
	switch {
	case o.NoSpeechThreshold < 0:
		return 1
	case o.NoSpeechThreshold == 0:
		return defaultNoSpeechThreshold
	}
	return o.NoSpeechThreshold
}

// DefaultOptions returns the published defaults: beam 5, temperature 0,
// no-speech threshold 0.6, word times.
func DefaultOptions() Options {
	return Options{BeamSize: 5, WordTimestamps: true, Parallel: 1}
}

// Transcriber turns the speech of a recording into text.
type Transcriber interface {
	// Transcribe decodes the given stretches of speech (samples at 16 kHz, in
	// order, not overlapping) and nothing outside them. It returns within one
	// window after ctx is canceled.
	Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt Options) (*Transcript, error)
	// Languages lists the codes that Options.Language may have.
	Languages() []string
	// Abilities returns which options it honors.
	Abilities() Abilities
	// Close frees the model; it waits for decodes in flight and may be called
	// more than once.
	Close() error
}

// LanguageDetector names the language that is spoken.
type LanguageDetector interface {
	// DetectLanguage returns the most likely language's code and its
	// probability (0 to 1) for the given speech; without any speech it
	// guesses from the first 30 s of the recording. Where the detector knows
	// some of the codes in among, it chooses from them, else from all.
	DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, among ...string) (language string, probability float64, err error)
}

// Among returns the known languages that are among those wanted, all of the known if
// none is.
func Among(known, wanted []string) []string {
	both := slices.DeleteFunc(slices.Clone(known), func(code string) bool { return !slices.Contains(wanted, code) })
	if len(both) == 0 {
		return known
	}
	return both
}
