package whisper

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// Transcribe implements asr.Transcriber. opt.Language is required. Options beyond
// their limits are an error: BestOf 0 to 20, Temperature 0 to 1, BeamSize at most 8 is
// used (libwhisper's limit; more is cut to 8).
//
// It returns at once when ctx ends, with its cause; a decode that is in flight then
// ends in the background. After Close it returns ErrClosed.
func (e *Engine) Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	language, err := e.language(opt.Language)
	if err != nil {
		return nil, err
	}
	if opt.Temperature < 0 || opt.Temperature > 1 || math.IsNaN(opt.Temperature) {
		return nil, fmt.Errorf("whisper: temperature: expected 0 to 1, found %g", opt.Temperature)
	}
	if opt.BestOf < 0 || opt.BestOf > 20 {
		return nil, fmt.Errorf("whisper: best of: expected 0 to 20, found %d", opt.BestOf)
	}
	transcript := &asr.Transcript{Language: language}
	windows := asr.Pack(speech, pcm, e.packing)
	if len(windows) == 0 {
		return transcript, ctx.Err()
	}
	t := &task{opt: opt, language: language, threads: 1}
	if opt.InitialPrompt != "" {
		t.initial = e.tokenize(" " + opt.InitialPrompt)
	}
	if len(opt.Hotwords) > 0 {
		t.hot = newHotwords(opt.Hotwords, e.tokenize)
	}
	parallel := max(opt.Parallel, 1)
	workers := min(parallel, len(windows))
	if opt.ConditionOnPrevious {
		workers = 1
	}
	if len(windows) == 1 {
		t.threads = parallel
	}

	results, err := e.all(ctx, pcm, windows, t, workers)
	if err != nil {
		return nil, err
	}
	var words []asr.Piece
	for _, r := range results {
		words = append(words, r.words...)
		transcript.Stats.Add(r.stats)
	}
	asr.Settle(words, speech)
	transcript.Segments = asr.Sentences(words, opt.WordTimestamps)
	return transcript, nil
}

// tokenize is weights.tokenize while the engine is open, nil after.
func (e *Engine) tokenize(text string) []int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	return e.weights.tokenize(text)
}

// all decodes the windows, several at once, and returns their results in order.
func (e *Engine) all(ctx context.Context, pcm *audio.PCM, windows []asr.Window, t *task, workers int) ([]result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]result, len(windows))
	var total float64
	for _, w := range windows {
		total += w.SpeechSeconds()
	}
	var mu sync.Mutex // guards next, done, first
	var next int
	var done float64
	var first error
	one := func(i int, previous string) error {
		w := windows[i]
		samples := w.Samples(make([]float32, 0, w.Len()), pcm)
		leave, err := t.opt.Pass(ctx)
		if err != nil {
			return err
		}
		defer leave()
		var r result
		err = e.run(ctx, t.hot, false, func(s *state, j *job) (err error) {
			r, err = e.window(s, j, t, w, samples, previous)
			return err
		})
		if err != nil {
			return err
		}
		results[i] = r
		mu.Lock()
		defer mu.Unlock()
		done += w.SpeechSeconds()
		if t.opt.Progress != nil {
			t.opt.Progress(done, total)
		}
		return nil
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			previous := ""
			for {
				mu.Lock()
				i := next
				next++
				stop := first != nil
				mu.Unlock()
				if i >= len(windows) || stop {
					return
				}
				if err := one(i, previous); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
					cancel(err)
					return
				}
				if t.opt.ConditionOnPrevious {
					previous += results[i].text
					if r := []rune(previous); len(r) > 1000 { // more than any prompt holds
						previous = string(r[len(r)-1000:])
					}
				}
			}
		})
	}
	group.Wait()
	return results, first
}

// detectSeconds is how much speech DetectLanguage listens to: what fits, with the
// pauses that are kept, into one window of 30 s.
const detectSeconds = 24

// DetectLanguage implements asr.LanguageDetector by one encoder pass over a window of
// at most 30 s, made of speech from the beginning, the middle and the end of the
// recording. The answer is one of Languages; an English-only model answers "en" with
// probability 1.
func (e *Engine) DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span) (language string, probability float64, err error) {
	if !e.header.Multilingual() {
		return "en", 1, nil
	}
	windows := asr.Pack(asr.Spread(speech, detectSeconds), pcm, asr.PackOptions{Max: 30, MaxGap: 0.2})
	if len(windows) == 0 {
		windows = []asr.Window{{Pieces: []audio.Span{{End: min(pcm.Len(), 30*audio.SampleRate)}}}}
	}
	mean := make(map[string]float64)
	for _, w := range windows {
		samples := w.Samples(make([]float32, 0, w.Len()), pcm)
		if len(samples) < leastSamples {
			samples = append(samples, make([]float32, leastSamples-len(samples))...)
		}
		var found map[string]float64
		err := e.run(ctx, nil, e.opt.Context == ContextShort, func(s *state, _ *job) (err error) {
			found, err = s.detect(samples, 1)
			return err
		})
		if err != nil {
			return "", 0, err
		}
		for code, p := range found {
			mean[code] += p / float64(len(windows))
		}
	}
	for _, code := range e.languages { // in a fixed order, so that equals do not toss
		if p := mean[code]; p > probability {
			language, probability = code, p
		}
	}
	if language == "" {
		return "", 0, fmt.Errorf("whisper: libwhisper gave no probability for any of %d languages: %w", len(e.languages), ErrDecode)
	}
	return language, min(probability, 1), nil
}
