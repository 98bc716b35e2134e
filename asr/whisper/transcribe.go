package whisper

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/decode"
)

// Transcribe implements asr.Transcriber. opt.Language is required. Options
// beyond their limits are an error: BestOf 0 to 20, Temperature 0 to 1,
// BeamSize at most 8 is used (libwhisper's limit; more is cut to 8).
//
// It returns immediately when ctx ends, with its cause; a decode that is in
// flight then ends in the background. After Close it returns ErrClosed.
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
	if opt.Translate && !e.Abilities().Translate {
		return nil, fmt.Errorf("whisper: %s: %w", e.model.Name, ErrTranslation)
	}
	opt.NoSpeechThreshold = opt.DiscardAbove()
	transcript := &asr.Transcript{Language: language}
	windows := decode.Pack(speech, pcm, e.packing)
	if len(windows) == 0 {
		return transcript, ctx.Err()
	}
	t := &task{opt: opt, language: language, speech: speech}
	if opt.InitialPrompt != "" && !e.model.NoPrompts {
		t.initial = e.tokenize(" " + opt.InitialPrompt)
	}
	if len(opt.Hotwords) > 0 {
		t.hot, transcript.Powerless, transcript.Unspelled = newHotwords(opt.Hotwords, e.spell)
	}
	results, err := e.all(ctx, pcm, windows, t)
	if err != nil {
		return nil, err
	}
	if transcript.Stats, err = e.repair(ctx, pcm, windows, results, t); err != nil {
		return nil, err
	}
	var words []decode.Piece
	for _, r := range results {
		said, _ := decode.Unloop(r.words)
		words = append(words, said...)
		transcript.Stats.Add(r.stats)
	}
	decode.Settle(words, speech)
	transcript.Segments = decode.Sentences(words, opt.WordTimestamps)
	for _, s := range transcript.Segments {
		for i := range s.Words { // in proportion to letters, without the heads of a published model
			s.Words[i].Interpolated = e.opt.AlignmentHeads == ""
		}
	}
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

// spell is weights.spell while the engine is open, nil after.
func (e *Engine) spell(text string) []int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	return e.weights.spell(text)
}

// all decodes the windows, several in parallel, and returns their results in
// order.
func (e *Engine) all(ctx context.Context, pcm *audio.PCM, windows []decode.Window, t *task) ([]result, error) {
	results := make([]result, len(windows))
	var total float64
	for _, w := range windows {
		total += w.SpeechSeconds()
	}
	var mu sync.Mutex // guards done and settled
	var done float64
	settled := settling{results: results, ready: make([]bool, len(windows))}
	if t.opt.Settled != nil && !t.once {
		settled.sentences = &decode.Settler{Speech: t.speech, Give: t.opt.Settled}
	}
	one := func(ctx context.Context, i, threads int, previous string) error {
		w := windows[i]
		samples := w.Samples(make([]float32, 0, w.Len()), pcm)
		err := e.run(ctx, t.hot, false, func(s *state, j *job) (err error) {
			results[i], err = e.window(s, j, t, threads, w, samples, previous)
			return err
		})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done += w.SpeechSeconds()
		settled.add(i)
		if t.opt.Progress != nil {
			t.opt.Progress(done, total)
		}
		return nil
	}
	joint := len(windows) == 1 || beams(t.opt)
	if !t.opt.ConditionOnPrevious {
		return results, e.schedule(ctx, windows, t, joint, func(ctx context.Context, i, threads int) error {
			return one(ctx, i, threads, "")
		})
	}
	previous := ""
	for i := range windows {
		err := e.schedule(ctx, windows[i:i+1], t, joint, func(ctx context.Context, _, threads int) error {
			return one(ctx, i, threads, previous)
		})
		if err != nil {
			return nil, err
		}
		previous += results[i].text
		if r := []rune(previous); len(r) > 1000 { // more than any prompt holds
			previous = string(r[len(r)-1000:])
		}
	}
	return results, nil
}

// settling passes on the words of the windows that no repair will change, in order.
type settling struct {
	results   []result
	ready     []bool
	next      int
	sentences *decode.Settler // nil: nobody asks
}

// add records that a window is decoded.
func (s *settling) add(i int) {
	if s.sentences == nil {
		return
	}
	s.ready[i] = true
	for ; s.next < len(s.ready) && s.ready[s.next]; s.next++ {
		r := s.results[s.next]
		if len(r.bare) > 0 || r.attempt.failed() && len(r.words) > 0 {
			s.sentences = nil // what follows waits for the repair
			return
		}
		said, _ := decode.Unloop(slices.Clone(r.words))
		s.sentences.Add(slices.Clone(said))
	}
}

// schedule calls decode for every window, by as many goroutines as the task may use, and
// passes the task's gate for each. joint allows several threads for the windows that
// would leave cores idle. It returns the first error, after which it begins no further
// window.
func (e *Engine) schedule(ctx context.Context, windows []decode.Window, t *task, joint bool, decode func(ctx context.Context, i, threads int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cores := max(t.opt.Parallel, 1)
	s := share(windows, cores)
	if !joint {
		s = shares{single: append(s.single, s.joint...)}
	}
	each := func(order []int, threads int) error {
		var group errgroup.Group
		group.SetLimit(max(cores/threads, 1))
		for _, i := range order {
			if ctx.Err() != nil {
				break
			}
			group.Go(func() error {
				leave, err := t.opt.Pass(ctx)
				if err != nil {
					return err
				}
				defer leave()
				if err := decode(ctx, i, threads); err != nil {
					cancel(err)
					return err
				}
				return nil
			})
		}
		return group.Wait()
	}
	if err := each(s.single, 1); err != nil {
		return err
	}
	if len(s.joint) > 0 {
		if err := each(s.joint, s.threads); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// beams reports whether several tokens are decoded at a time. libwhisper looks
// at the sound for a single token in as many parts as there are threads, and
// the sum of the parts depends on their number in the third digit; for several
// tokens it does not.
func beams(opt asr.Options) bool { return opt.BeamSize > 1 && opt.Temperature == 0 }

// How DetectLanguage listens: to speech that fits, with the pauses that are kept, into
// one window of 30 s; or first, where the encoder's context may be cut, into
// firstSeconds, and only if that leaves the language in doubt into the longer one.
const (
	detectSeconds = 24
	firstSeconds  = 7
	firstWindow   = 8.9 // what 512 positions hold beside their margin
	sureLanguage  = 0.95
	// plausibleLanguage is the least probability of a language that is tried on a text,
	// and textWeight how much the mean of the text's log probabilities (as of one token)
	// counts against the language's own: about the number of tokens in a short sentence.
	plausibleLanguage = 0.03
	textWeight        = 8
)

// DetectLanguage implements asr.LanguageDetector by one encoder pass over speech from
// the beginning, the middle and the end of the recording, at most 30 s of it. With
// ContextShort a shorter pass comes first, which is enough where it leaves no doubt. If
// doubt remains, the language is the one in which the speech makes most sense. The
// answer is one of Languages; an English-only model answers "en" with probability 1.
func (e *Engine) DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span) (language string, probability float64, err error) {
	if !e.header.Multilingual() {
		return "en", 1, nil
	}
	if len(speech) == 0 { // then to the beginning, if there is one
		speech = []audio.Span{{End: min(pcm.Len(), 30*audio.SampleRate)}}
	}
	var heard map[string]float64
	if e.opt.Context == ContextShort {
		if heard, err = e.hearLanguage(ctx, pcm, decode.Spread(speech, firstSeconds), firstWindow); err != nil {
			return "", 0, err
		}
		language = e.likeliest(heard)
	}
	if heard[language] < sureLanguage {
		if heard, err = e.hearLanguage(ctx, pcm, decode.Spread(speech, detectSeconds), 30); err != nil {
			return "", 0, err
		}
		language = e.likeliest(heard)
	}
	if language == "" {
		return "", 0, fmt.Errorf("whisper: libwhisper returned no probability for any of %d languages: %w", len(e.languages), ErrDecode)
	}
	if heard[language] < sureLanguage {
		if heard, err = e.readLanguage(ctx, pcm, speech, heard); err != nil {
			return "", 0, err
		}
		language = e.likeliest(heard)
	}
	return language, min(heard[language], 1), nil
}

// likeliest is the language with the greatest value, "" without any.
func (e *Engine) likeliest(values map[string]float64) string {
	best := ""
	for _, code := range e.languages { // in a fixed order, so that equals do not toss
		if v, ok := values[code]; ok && (best == "" || v > values[best]) {
			best = code
		}
	}
	return best
}

// readLanguage transcribes some of the speech in each plausible language and weighs
// their probabilities by those of the texts: in a wrong language the decoder writes what
// it believes less.
func (e *Engine) readLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, heard map[string]float64) (map[string]float64, error) {
	plausible := slices.DeleteFunc(slices.Clone(e.languages), func(code string) bool { return heard[code] < plausibleLanguage })
	if len(plausible) < 2 {
		return heard, nil
	}
	windows := decode.Pack(decode.Spread(speech, firstSeconds), pcm, e.packing)
	read := make(map[string]float64)
	var all float64
	for _, code := range plausible {
		results, err := e.all(ctx, pcm, windows, &task{opt: asr.DefaultOptions(), language: code, once: true})
		if err != nil {
			return nil, err
		}
		var sum float64
		var tokens int
		for _, r := range results {
			for _, w := range r.words {
				sum, tokens = sum+w.LogProb, tokens+w.Tokens
			}
		}
		if tokens > 0 {
			read[code] = heard[code] * math.Exp(textWeight*sum/float64(tokens))
			all += read[code]
		}
	}
	if all == 0 { // nothing is said in any
		return heard, nil
	}
	for code := range read {
		read[code] /= all
	}
	return read, nil
}

// hearLanguage returns each language's probability for speech in windows of the
// given length in seconds; a window of 30 s gets the whole context of the
// encoder, a shorter one what it needs.
func (e *Engine) hearLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, seconds float64) (map[string]float64, error) {
	windows := decode.Pack(speech, pcm, decode.PackOptions{Max: seconds, MaxGap: 0.2})
	if len(windows) == 0 {
		windows = []decode.Window{{}} // not a sample: silence
	}
	mean := make(map[string]float64)
	for _, w := range windows {
		samples := w.Samples(make([]float32, 0, max(w.Len(), leastSamples)), pcm)
		if len(samples) < leastSamples {
			samples = samples[:leastSamples] // silence up to here
		}
		positions := 0
		if seconds < 30 {
			positions = shortContext(len(samples))
		}
		var found map[string]float64
		err := e.run(ctx, nil, positions == 0 && e.opt.Context == ContextShort, func(s *state, _ *job) (err error) {
			found, err = s.detect(samples, positions, 1)
			return err
		})
		if err != nil {
			return nil, err
		}
		for code, p := range found {
			mean[code] += p / float64(len(windows))
		}
	}
	return mean, nil
}
