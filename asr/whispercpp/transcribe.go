package whispercpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// request holds the parameters of a decode.
type request struct {
	language, prompt string
	beam             int // at temperature 0
	samples          int // at higher temperatures
	temperature      float64
	translate        bool
}

// token is a decoded token.
type token struct {
	id   int32
	logp float64
}

// leastLogProb is the mean log probability below which the text of a window
// that is probably silent is discarded (Radford et al. 2022, section 4.5).
const leastLogProb = -1.0

// request checks the options of a transcription.
func (d *onDevice) request(opt asr.Options) (request, error) {
	language, err := asr.Language("whisper: "+d.file.Name, opt.Language, d.file.Languages)
	switch {
	case err != nil:
		return request{}, err
	case opt.Temperature < 0 || opt.Temperature > 1 || math.IsNaN(opt.Temperature):
		return request{}, fmt.Errorf("whisper: temperature: expected 0 to 1, found %g", opt.Temperature)
	case opt.Translate && !d.translates:
		return request{}, fmt.Errorf("whisper: %s: %w", d.file.Name, whisper.ErrTranslation)
	}
	r := request{
		language: language, prompt: opt.InitialPrompt, temperature: opt.Temperature, translate: opt.Translate,
		beam: min(max(opt.BeamSize, 1), mostDecoders), samples: mostDecoders - 3, // whisper.cpp's default of 5
	}
	if opt.Temperature > 0 {
		r.beam, r.samples = 1, min(max(opt.BestOf, 1), mostDecoders)
	}
	return r, nil
}

// transcribe decodes windows in order. After errDevice, t is the text so far,
// and rest the speech that it leaves out.
func (d *onDevice) transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (t *asr.Transcript, rest []audio.Span, err error) {
	r, err := d.request(opt)
	if err != nil {
		return nil, nil, err
	}
	t = &asr.Transcript{Language: r.language}
	windows := decode.Pack(speech, pcm, d.file.Packing)
	var words []decode.Word
	var total, done float64
	for _, w := range windows {
		total += w.SpeechSeconds()
	}
	for i, w := range windows {
		var more []decode.Word
		more, err = d.window(ctx, pcm, w, r, opt, &t.Stats)
		if errors.Is(err, errDevice) {
			for _, w := range windows[i:] {
				rest = append(rest, w.Speech...)
			}
			break
		}
		if err != nil {
			return nil, nil, err
		}
		words = append(words, more...)
		if done += w.SpeechSeconds(); opt.Progress != nil {
			opt.Progress(done, total)
		}
	}
	decode.Settle(words, speech)
	t.Segments = decode.Sentences(words, opt.WordTimestamps)
	return t, rest, cmp.Or(err, context.Cause(ctx))
}

// window decodes a window once the gate lets it pass, and returns its words.
func (d *onDevice) window(ctx context.Context, pcm *audio.PCM, w decode.Window, r request, opt asr.Options, stats *asr.Stats) ([]decode.Word, error) {
	leave, err := opt.Pass(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	type decoded struct {
		tokens   []token
		noSpeech float64
		work     asr.Stats
	}
	result := make(chan decoded, 1) // the computation may outlive this call
	err = d.run(ctx, r.temperature > 0, func(ctx context.Context, s *state) (err error) {
		var f decoded
		if f.tokens, f.work, err = s.decode(ctx, r, samples(w, pcm)); err == nil && len(f.tokens) > 0 {
			f.noSpeech, err = s.noSpeech()
		}
		result <- f
		return err
	})
	if err != nil {
		return nil, err
	}
	f := <-result
	stats.Windows++
	stats.Add(f.work)
	words, mean := d.words(w, f.tokens)
	if f.noSpeech > opt.DiscardAbove() && mean < leastLogProb {
		stats.Discarded++
		return nil, nil
	}
	for i := range words {
		words[i].NoSpeechProb, words[i].Language, words[i].Temperature = f.noSpeech, r.language, r.temperature
	}
	words, _ = decode.Unloop(words)
	return words, nil
}

// words returns the words of a decode, spread over the speech between its time
// marks, and the mean log probability of its tokens.
func (d *onDevice) words(w decode.Window, tokens []token) (words []decode.Word, mean float64) {
	eot, begin := d.ends()
	var section []decode.Token
	from, end := w.Time(0), w.Time(float64(w.Len())/audio.SampleRate)
	flush := func(to float64) {
		text := decode.Words(section)
		decode.Align(text, from, to, w.Speech)
		words, section = append(words, text...), nil
	}
	for _, t := range tokens {
		mean += t.logp / float64(len(tokens))
		switch {
		case t.id >= begin:
			at := w.Time(float64(t.id-begin) * 0.02)
			flush(at)
			from = at
		case t.id < eot:
			section = append(section, decode.Token{
				Text: d.text(t.id), Probability: math.Exp(t.logp), LogProb: t.logp, Time: math.NaN(), Seek: w.Time(0), ID: t.id,
			})
		}
	}
	flush(end)
	for i := range words {
		words[i].Interpolated = true
	}
	return words, mean
}

// detect returns the likeliest language of the first, the middle and the last
// window of speech, or of the beginning of the recording.
func (d *onDevice) detect(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Detection) (language string, probability float64, err error) {
	windows := decode.Sample(speech, pcm, d.file.Packing)
	if len(windows) == 0 {
		windows = append(windows, decode.Window{}) // no samples: silence
	}
	among := asr.Among(d.file.Languages, opt.Among)
	mean, all := map[string]float64{}, 0.0
	for _, w := range windows {
		answer := make(chan map[string]float64, 1)
		err := d.run(ctx, false, func(_ context.Context, s *state) error {
			list, err := s.detect(samples(w, pcm))
			answer <- list
			return err
		})
		if err != nil {
			return "", 0, err
		}
		list := <-answer
		for _, code := range among {
			p := (w.SpeechSeconds() + 0.1) * list[code]
			mean[code], all = mean[code]+p, all+p
		}
	}
	language = slices.MaxFunc(among, func(a, b string) int { return cmp.Compare(mean[a], mean[b]) })
	return language, mean[language] / max(all, math.SmallestNonzeroFloat64), nil
}
