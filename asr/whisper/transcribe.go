package whisper

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// Transcribe implements asr.Transcriber. opt.Language is required. Options out
// of range (BestOf 0 to 20, Temperature 0 to 1) fail; BeamSize is at most 8.
//
// It returns when ctx ends, with its cause; a device's computation then ends in
// the background. After Close it returns ErrClosed.
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
		return nil, fmt.Errorf("whisper: %s: %w", e.name, ErrTranslation)
	}
	opt.NoSpeechThreshold = opt.DiscardAbove()
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	transcript := &asr.Transcript{Language: language}
	windows := decode.Pack(speech, pcm, e.packing)
	if len(windows) == 0 {
		return transcript, context.Cause(ctx)
	}
	t := &task{opt: opt, language: language, others: e.others(opt.Languages), speech: speech, echoes: decode.Distinct(windows, pcm)}
	if opt.InitialPrompt != "" && !e.model.NoPrompts {
		t.initial = e.cpu.Tokenize(" " + opt.InitialPrompt)
	}
	if len(opt.Hotwords) > 0 {
		t.names, transcript.Ineffective, transcript.Unspelled = namesOf(opt.Hotwords, e.cpu)
	}
	results, err := e.all(ctx, pcm, windows, t)
	if err != nil {
		return nil, err
	}
	divided := asr.Stats{}
	if len(t.others) > 0 {
		if windows, results, divided, err = e.divide(ctx, pcm, windows, results, t); err != nil {
			return nil, err
		}
	}
	if transcript.Stats, err = e.repair(ctx, pcm, windows, results, repairs(len(windows)), t); err != nil {
		return nil, err
	}
	transcript.Stats.Add(divided)
	var words []decode.Word
	for _, r := range results {
		words = append(words, t.text(r)...)
		transcript.Stats.Add(r.stats)
	}
	decode.Settle(words, speech)
	transcript.Segments = decode.Sentences(words, opt.WordTimestamps)
	return transcript, nil
}

// all decodes the windows and returns their results in order.
func (e *Engine) all(ctx context.Context, pcm *audio.PCM, windows []decode.Window, t *task) ([]result, error) {
	p := progress{task: t, opt: t.opt, windows: windows, results: make([]result, len(windows)), ready: make([]bool, len(windows))}
	p.mend = func(i int) error { return e.mend(ctx, pcm, windows[i], &p.results[i], t) }
	if t.opt.Settled != nil {
		p.sentences = &decode.Settler{Speech: t.speech, Give: t.opt.Settled}
	}
	for _, w := range windows {
		p.total += w.SpeechSeconds()
	}
	jobs := make([]*job, len(windows))
	for i := range jobs {
		jobs[i] = e.textJob(pcm, windows[i], textPlan{t: t, language: t.language, others: t.others, prompt: e.prompt(t)})
	}
	err := e.decode(ctx, jobs, t.opt, func(i int) {
		p.results[i] = e.conclude(jobs[i], t)
		jobs[i] = nil
		p.add(i)
	})
	p.mending.Wait()
	return p.results, cmp.Or(err, p.failed)
}

// textJob returns the job that decodes a window's text by a plan.
func (e *Engine) textJob(pcm *audio.PCM, w decode.Window, p textPlan) *job {
	p.v, p.window = e.cpu, w
	return &job{pcm: pcm, window: w, rows: p.t.request(p.language, nil).width(), plan: &p}
}

// conclude reads the result of a window's job.
func (e *Engine) conclude(j *job, t *task) result {
	plan := j.plan.(*textPlan)
	r := result{attempt: plan.best.attempt, language: plan.spoken, sure: plan.sure, noSpeech: plan.best.noSpeech, stats: j.stats}
	r.stats.Windows = 1
	r.stats.Unprompted += plan.unprompted
	e.settle(&r, t, j.window)
	if len(plan.others) > 0 && len(r.words) > 0 {
		r.unsure = e.unsure(j.pcm, j.window, &r)
	}
	return r
}

// progress reports the progress of a transcription to its caller.
type progress struct {
	task        *task
	opt         asr.Options
	windows     []decode.Window
	results     []result
	ready       []bool
	done, total float64
	sentences   *decode.Settler   // nil without a callback, and once words wait for the last repair
	mend        func(i int) error // repairs a window

	mu      sync.Mutex
	next    int // the first window whose words are not passed on
	mends   int // windows repaired, and the one being repaired
	mending sync.WaitGroup
	failed  error // of a repair
}

// add records that a window is decoded.
func (p *progress) add(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += p.windows[i].SpeechSeconds()
	p.ready[i] = true
	p.settle()
	if p.opt.Progress != nil {
		p.opt.Progress(p.done, p.total)
	}
}

// settle passes on the words of windows that no later repair will change, in
// order. The first windows that only lack words are repaired now: the choice
// depends on the windows alone, not on the caller.
func (p *progress) settle() {
	for ; p.next < len(p.ready) && p.ready[p.next] && p.failed == nil; p.next++ {
		r := p.results[p.next]
		switch {
		case r.attempt.degenerate() && len(r.words) > 0 || len(r.unsure) > 0:
			p.sentences = nil // later words wait for the repair
		case len(r.bare) > 0 && p.mends < repairs(len(p.windows))/2:
			p.mends++
			p.ready[p.next] = false // until it is repaired
			p.mending.Go(func() { p.repaired(p.mend(p.next)) })
			return
		default:
			p.pass(r)
		}
	}
}

// repaired continues after the repair of the next window.
func (p *progress) repaired(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready[p.next] = true
	if p.failed = err; err == nil {
		p.pass(p.results[p.next])
		p.next++
		p.settle()
	}
}

// pass passes on the words of a window, unless a repair will add some.
func (p *progress) pass(r result) {
	if len(r.bare) > 0 {
		p.sentences = nil
	}
	if p.sentences != nil {
		p.sentences.Add(p.task.text(r))
	}
}
