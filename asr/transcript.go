// Package asr holds the types that all speech recognizers share: the
// transcript, the options and the Transcriber interface. The recognizers are in
// asr/whisper and asr/onnx.
package asr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Word is one word of a transcript; in languages written without spaces
// (Chinese, Japanese, Thai and others) it is one character.
type Word struct {
	// Text is the word with its punctuation, without surrounding spaces.
	Text string
	// Start and End are seconds from the beginning of the file. End is at
	// least 10 ms after Start, and words never go back in time.
	Start, End float64
	// Probability is the mean probability of the word's tokens, 0 to 1.
	Probability float64
	// Interpolated reports that Start and End were not measured, but
	// interpolated by letters between measured times.
	Interpolated bool `json:",omitzero"`
	// Evidence is the probability, 0 to 1, that the model that times words assigns
	// to this word there; nil without one, or if it can't spell it.
	Evidence *float64 `json:",omitempty"`
	// Doubtful reports that the sound contradicts the word: see spec.Word.
	Doubtful bool `json:",omitzero"`
	// Tokens is the number of the segment's tokens that belong to the word.
	Tokens int `json:",omitzero"`
}

// Segment is a sentence, or a part of one between two pauses.
type Segment struct {
	// Start and End are seconds from the beginning of the file.
	Start, End float64
	// Text is the segment as written, without surrounding spaces.
	Text string
	// Words are the words of Text in order; nil if the recognizer returns none
	// or Options.WordTimestamps is false.
	Words []Word
	// AvgLogProb is the mean natural logarithm of the tokens' probabilities.
	AvgLogProb float64
	// NoSpeechProb is the mean no-speech probability over the words, 0 to 1:
	// asr/whisper uses the windows of the words, asr/onnx the blank's
	// probability at the tokens; 0 if the recognizer does not report it.
	NoSpeechProb float64
	// Tokens are the segment's token numbers in the recognizer's vocabulary,
	// without time marks; nil if not known.
	Tokens []int32 `json:",omitzero"`
	// Temperature is the highest that a part of the segment was decoded at. Seek
	// is the start, in seconds of the file, of the segment's first window.
	Temperature float64 `json:",omitzero"`
	Seek        float64 `json:",omitzero"`
	// Language is the code of the language that the text was decoded in; "" if
	// the recognizer uses one language for all.
	Language string `json:",omitzero"`
	// Confidence is the estimated share of correct text, 0 to 1, by the
	// calibration of the recognizer's model; nil without one.
	Confidence *float64 `json:",omitempty"`
}

// Stats counts the work done for a transcript.
type Stats = spec.ASRStats

// Transcript is the result of recognizing a recording.
type Transcript struct {
	// Language is the language of decoding, as ISO 639-1 (or Whisper's code if
	// ISO 639-1 has none, such as "haw" and "yue").
	Language string
	// Segments are in order of time and do not overlap; empty without speech.
	Segments []Segment
	// Stats counts the work done.
	Stats Stats
	// Ineffective lists hotwords of Options that have too few letters.
	Ineffective []string `json:",omitempty"`
	// Unspelled lists hotwords that have no effect because the model's
	// vocabulary cannot spell them.
	Unspelled []string `json:",omitempty"`
	// State is for Draft.State; nil if nothing can be continued.
	State any `json:"-"`
	// Grows reports that the texts of a State only continue: a later one begins
	// with this one, but for the last word, which may become longer.
	Grows bool `json:"-"`
}

// Options configures a transcription. The zero value, with a Language if one is
// required, decodes greedily and without word times; DefaultOptions returns the
// published defaults. Abilities lists a recognizer's options.
type Options struct {
	// Language is a code that NormalizeLanguage returns. asr/whisper requires
	// it; asr/onnx takes "" for a model that detects the language itself.
	Language string
	// Languages are the languages that passages may be in, including Language,
	// if it was detected rather than given; empty keeps every passage in
	// Language. asr/whisper supports it, on a CPU.
	Languages []string
	// BeamSize is the width of the beam search at temperature 0; 1 (or 0) is
	// greedy. Models with a CTC output keep twice as many prefixes; asr/onnx
	// searches at any temperature and takes 0 for the default of 5.
	BeamSize int
	// Temperature is the first temperature: 0 searches, above 0 samples.
	Temperature float64
	// BestOf is the number of samples drawn at a Temperature above 0; the
	// most likely one is kept. 0 means 1; at most 20.
	BestOf int
	// Hotwords are names and other words that the text may contain. asr/onnx
	// raises their probability, asr/whisper looks for misspelled ones.
	Hotwords []string
	// InitialPrompt precedes every window's text and steers its style.
	InitialPrompt string
	// Translate asks for the text in English, regardless of Language. A
	// recognizer without Abilities.Translate returns an error.
	Translate bool
	// NoSpeechThreshold discards text whose no-speech probability exceeds it, 0
	// to 1; 0 means the published 0.6, a negative value keeps all text. From
	// 0.6 on, asr/whisper keeps text at up to 0.9 if its mean log probability
	// is -1 or more, as Whisper's published rule does. asr/onnx only reports
	// the probability, in Segment.NoSpeechProb.
	NoSpeechThreshold float64
	// WordTimestamps asks for Segment.Words.
	WordTimestamps bool
	// Parallel is how many windows are decoded in parallel, for the same text.
	Parallel int
	// Draft is of the same speech when it had less sound; the zero value without.
	Draft Draft
	// Gate, if not nil, is passed before each decode and left after it, so that
	// recognizers and other computations share a number of cores.
	Gate Gate
	// Progress, if not nil, is called after each window with the seconds of
	// speech decoded so far and in total, never concurrently.
	Progress func(done, total float64)
	// Working, if not nil, is called after each pass of a model, possibly
	// concurrently: if it is not called for long, a call hangs. Recognizers
	// that call Progress every few seconds need not call it.
	Working func()
	// Settled, if not nil, is called before Progress with the next sentences, as
	// soon as they are final. Recognizers that finish at once need not call it.
	Settled func(sentences []Segment)
}

// Abilities lists the Options that a recognizer supports; it ignores the
// others. Language, Parallel, Gate, Progress and Working always apply.
type Abilities struct {
	// Beam is the largest BeamSize; 0 for a recognizer without beam search.
	Beam int
	// BeamForHotwords reports whether it searches with a beam only if Hotwords
	// are given, and otherwise takes the best token at each step.
	BeamForHotwords bool
	// Temperature reports whether Temperature and BestOf make it sample.
	Temperature bool
	// Hotwords and InitialPrompt report whether it supports them.
	Hotwords, InitialPrompt bool
	// NoSpeech reports whether it sets Segment.NoSpeechProb.
	NoSpeech bool
	// Translate reports whether it can translate other languages into English.
	Translate bool `json:",omitzero"`
}

// Gate lets a limited number of workers compute concurrently. A worker takes
// one core of it, even if it computes with several threads; all workers have at
// most Options.Parallel threads together. golang.org/x/sync's
// semaphore.Weighted implements it.
type Gate interface {
	// Acquire waits for n cores; it returns ctx's error if ctx ends first.
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

// ReportWork calls Working, if it is not nil.
func (o Options) ReportWork() {
	if o.Working != nil {
		o.Working()
	}
}

// defaultNoSpeechThreshold is Whisper's published no-speech threshold.
const defaultNoSpeechThreshold = 0.6

// DiscardAbove returns the no-speech probability above which text is discarded:
// NoSpeechThreshold or its default.
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
func DefaultOptions() Options { return Options{BeamSize: 5, WordTimestamps: true, Parallel: 1} }

// Transcriber turns the speech of a recording into text.
type Transcriber interface {
	// Transcribe decodes the given stretches of speech (samples at 16 kHz, in
	// order, not overlapping) and nothing outside them. It returns within one
	// window after ctx is canceled.
	Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt Options) (*Transcript, error)
	// Languages lists the valid codes of Options.Language.
	Languages() []string
	// Abilities returns the options that it supports.
	Abilities() Abilities
	// Close frees the model after decodes in flight; it may be repeated.
	Close() error
}

// Sketcher is a Transcriber with a faster, less exact way to read speech that
// continues. Other recognizers read it as if it had ended.
type Sketcher interface {
	// Sketch is Transcribe for a few seconds of speech.
	Sketch(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt Options) (*Transcript, error)
}

// Draft describes speech that grows. Text and State save time and change nothing.
type Draft struct {
	// Text is the text of the last transcription, "" before the first.
	Text string
	// Open reports that more sound follows: asr/onnx then leaves out the sound
	// that does not fill a chunk of a streaming model.
	Open bool
	// State is the State of the last Transcript of open speech, nil before the
	// first. One transcription at a time may continue it.
	State any
}

// ErrLanguage marks a language that a recognizer does not support.
var ErrLanguage = spec.Permanent(errors.New("language not supported"))

// Language returns the code of a language if the recognizer, whose name errors
// begin with, supports it; one without a list supports all.
func Language(recognizer, language string, supported []string) (string, error) {
	code, ok := spec.NormalizeLanguage(language)
	if !ok || len(supported) > 0 && !slices.Contains(supported, code) {
		return "", fmt.Errorf("%s: language: it supports %s, not %q: %w", recognizer, cmp.Or(strings.Join(supported, ", "), "ISO 639 codes"), language, ErrLanguage)
	}
	return code, nil
}

// ErrNoLanguage is returned for a model that does not detect languages.
var ErrNoLanguage = errors.New("the model does not detect languages")

// Detection configures the detection of a language.
type Detection struct {
	// Among are the codes to choose from. The detector ignores those that it
	// does not know, and chooses from all its languages if none remains.
	Among []string
	// Brief asks for a faster answer, for speech that this recognizer will
	// probably not transcribe.
	Brief bool
}

// LanguageDetector detects the spoken language. A Transcriber may implement it.
type LanguageDetector interface {
	// DetectLanguage returns the most likely language's code and its
	// probability (0 to 1) for the given speech; without speech it guesses from
	// the first 30 s of the recording.
	DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt Detection) (language string, probability float64, err error)
}

// Among returns the known languages that are also wanted, or all known ones if
// there are none.
func Among(known, wanted []string) []string {
	both := slices.DeleteFunc(slices.Clone(known), func(code string) bool { return !slices.Contains(wanted, code) })
	if len(both) == 0 {
		return known
	}
	return both
}
