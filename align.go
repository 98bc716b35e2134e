package otograph

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

// Errors of Align, by errors.Is.
var (
	// ErrNoText marks a text without words.
	ErrNoText = errors.New("the text has no words")
	// ErrMisfit marks a text that is not spoken in the recording.
	ErrMisfit = errors.New("the text does not match the recording")
)

// AlignOptions configures an alignment.
type AlignOptions struct {
	// Language is the language of text and recording, as ASRLanguage; ""
	// detects it.
	Language string
	// Progress, if not nil, is called with the seconds of speech processed so
	// far and in total, never concurrently.
	Progress func(done, total float64)
}

// Alignment is a known text aligned with a recording. Times are in seconds.
type Alignment struct {
	// AudioDuration is the decoded length in seconds.
	AudioDuration float64
	// Language is the code of the language, detected or given.
	Language string
	// Words holds all words of the text, in order and as written. Missing marks
	// words that were not found in the audio.
	Words []align.Word
	// Extra holds the speech that is not in the text, in order of time.
	Extra []align.Extra
	// Warnings are the warnings about the recording (spec.WarnAudio).
	Warnings []spec.Warning
	// Score measures the agreement of text and audio, from 0 to 1: words that
	// were not found and speech that is not in the text both lower it.
	Score float64
}

// Fits reports whether the text is spoken in the recording, by the mean
// probability of the words that the model can spell. A text of only part of the
// recording also fits, and so does a recording of only part of the text. The
// times of a text that does not fit are meaningless; Align then returns
// ErrMisfit with it.
func (a *Alignment) Fits() bool { return stages.Fits(a.Words, a.Extra) }

// Align finds the time of each word of a text. It needs a voice activity
// detector and, for the language, a model of the optimized tier with a CTC
// output; without one of them the error wraps models.ErrMissing. A transducer
// or a Paraformer has no such output; if one transcribes the language, a CTC
// model in the same set aligns. Other errors wrap ErrNoText for a text without
// words, or come from package audio for bad input. With ErrMisfit, Align also
// returns the Alignment, for inspection.
//
// Words that the model cannot spell (numbers, signs, other scripts) get the
// time of the speech between their neighbors. Memory hardly grows with length.
func (p *Pipeline) Align(ctx context.Context, src Source, text string, o AlignOptions) (*Alignment, error) {
	return p.AlignWords(ctx, src, align.Split(text), o)
}

// AlignWords is like Align for a text that is already divided into words, as
// align.Split does; the result has the same number of words.
func (p *Pipeline) AlignWords(ctx context.Context, src Source, words []string, o AlignOptions) (*Alignment, error) {
	if strings.TrimSpace(strings.Join(words, "")) == "" {
		return nil, fmt.Errorf("%s: %w", src.Name(), ErrNoText)
	}
	var options Options
	if o.Language != "" {
		options.ASRLanguage = &o.Language
	}
	opt, err := options.Effective()
	if err != nil {
		return nil, err
	}
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	pcm, err := audio.Open(ctx, src, p.config.Audio)
	if err != nil {
		return nil, err
	}
	defer pcm.Close()
	lease, err := p.engines.Lease("")
	if err != nil {
		return nil, err
	}
	defer lease.End()
	language, laid, err := p.stages(opt, lease).Align(ctx, pcm, words, o.Progress)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	at := stages.ClockOf(pcm)
	a := &Alignment{AudioDuration: at.Duration(), Language: language.Code, Words: laid.Words, Extra: laid.Extra, Warnings: assemble.AudioWarnings(pcm.Info()), Score: laid.Score}
	if !a.Fits() {
		return a, fmt.Errorf("%s: %w (score %.2f)", src.Name(), ErrMisfit, a.Score)
	}
	return a, nil
}
