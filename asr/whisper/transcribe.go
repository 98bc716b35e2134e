package whisper

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
)

// Transcribe implements asr.Transcriber. opt.Language is required. Options out
// of range (BestOf 0 to 20, Temperature 0 to 1) fail; BeamSize is at most 8.
//
// It returns when ctx ends, with its cause; a device's computation then ends in
// the background. After Close it returns ErrClosed.
func (e *Engine) Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	language, err := asr.Language("whisper: "+e.name, opt.Language, e.languages)
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
	t := &task{opt: opt, language: language, others: e.others(opt.Languages), speech: speech}
	if opt.InitialPrompt != "" && !e.model.NoPrompts {
		t.initial = e.cpu.Tokenize(" " + opt.InitialPrompt)
	}
	if len(opt.Hotwords) > 0 {
		t.names, transcript.Ineffective, transcript.Unspelled = namesOf(opt.Hotwords, e.cpu)
	}
	windows, results, left, err := e.all(ctx, pcm, windows, t)
	if err != nil {
		return nil, err
	}
	t.opt.Settled = nil
	if transcript.Stats, err = e.repair(ctx, pcm, windows, results, left, t); err != nil {
		return nil, err
	}
	var words []decode.Word
	for _, r := range results {
		words = append(words, r.spoken()...)
		transcript.Stats.Add(r.stats)
	}
	decode.Settle(words, speech)
	transcript.Segments = decode.Sentences(words, opt.WordTimestamps)
	return transcript, nil
}

// all decodes the windows, divides those with several languages and returns the
// windows and their results in order, and the encoder passes left for repairs.
func (e *Engine) all(ctx context.Context, pcm *audio.PCM, windows []decode.Window, t *task) (divided []decode.Window, results []result, left int, err error) {
	p := progress{opt: t.opt, windows: windows, parts: make([][]part, len(windows)), ready: make([]bool, len(windows)), unasked: len(windows) + passagesMore}
	alone := *t // with the gate of the worker that decoded the window
	alone.opt.Parallel, alone.opt.Settled = 1, nil
	p.mend = func(w *part) (err error) {
		p.left, err = e.mend(ctx, pcm, w, p.left, &alone)
		return err
	}
	p.divide = func(w *part) error {
		asked := w.result.stats.Asked
		parts, err := e.divide(ctx, pcm, w.window, &w.result, p.unasked, &alone)
		p.unasked -= w.result.stats.Asked - asked
		if w.result.unsure = nil; parts != nil {
			p.parts[p.next] = parts
		}
		return err
	}
	if n := repairs(len(windows)); n > 1 { // a single repair is chosen at the end, the most valuable one
		p.left = n + n/2
	}
	early := p.left
	if t.opt.Settled != nil {
		p.sentences = &decode.Settler{Speech: t.speech, Give: t.opt.Settled}
	}
	for _, w := range windows {
		p.total += w.SpeechSeconds()
	}
	jobs, finder := make([]*job, len(windows)), new(decode.Finder)
	for i := range jobs {
		jobs[i] = e.textJob(pcm, windows[i], textPlan{t: t, language: t.language, others: t.others, prompt: e.prompt(t)})
		jobs[i].finder = finder
	}
	err = e.decode(ctx, jobs, t.opt, func(i int) {
		p.parts[i] = []part{{window: jobs[i].window, result: e.conclude(jobs[i], t)}}
		jobs[i] = nil
		p.add(i)
	})
	if err = cmp.Or(err, p.failed); err != nil {
		return nil, nil, 0, err
	}
	for _, q := range slices.Concat(p.parts...) {
		divided, results = append(divided, q.window), append(results, q.result)
	}
	n := repairs(len(divided))
	return divided, results, min(n, 2*n-early+p.left), nil
}

// textJob returns the job that decodes a window's text by a plan.
func (e *Engine) textJob(pcm *audio.PCM, w decode.Window, p textPlan) *job {
	p.v, p.job = e.cpu, &job{pcm: pcm, window: w, rows: p.t.request(p.language, nil).width(), plan: &p}
	return p.job
}

// conclude reads the result of a window's job.
func (e *Engine) conclude(j *job, t *task) result {
	plan := j.plan.(*textPlan)
	r := result{attempt: plan.best.attempt, language: plan.spoken, sure: plan.sure, noSpeech: plan.best.noSpeech, stats: j.stats, echoes: j.echoes}
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
	opt          asr.Options
	windows      []decode.Window
	parts        [][]part // of each window: one, unless it is divided
	ready        []bool
	done, total  float64
	sentences    *decode.Settler // nil without a callback, and once the words must wait for the last repair
	unasked      int             // passages whose languages may still be detected
	left         int             // encoder passes for repairs during the first pass
	mend, divide func(w *part) error

	mu     sync.Mutex
	next   int   // the first window whose words are not passed on
	failed error // of a repair or a division
}

// add records that a window is decoded, and makes the changes that the next
// windows need while the other workers continue.
func (p *progress) add(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += p.windows[i].SpeechSeconds()
	p.ready[i] = true
	for {
		change := p.settle()
		if p.opt.Progress != nil {
			p.opt.Progress(p.done, p.total)
		}
		if change == nil {
			return
		}
		p.ready[p.next] = false // until the change is made
		p.mu.Unlock()
		err := change(&p.parts[p.next][0])
		p.mu.Lock()
		p.ready[p.next], p.failed = true, err
	}
}

// settle passes on the words of windows that no later repair will change, in
// order, and returns the change that the next window needs. Windows of unclear
// language are divided now; of the windows whose only fault is speech without
// words, the first ones are repaired now. The choice depends on the windows
// alone, not on the caller.
func (p *progress) settle() (change func(w *part) error) {
	for ; p.next < len(p.ready) && p.ready[p.next] && p.failed == nil; p.next++ {
		r := &p.parts[p.next][0].result
		switch {
		case len(r.unsure) > 0:
			return p.divide
		case len(r.bare) > 0 && !r.tried && len(p.parts[p.next]) == 1 && !r.attempt.degenerate() && p.left > 0:
			r.tried = true
			return p.mend
		}
		for _, q := range p.parts[p.next] {
			if len(q.result.bare) > 0 || q.result.attempt.degenerate() && len(q.result.words) > 0 {
				p.sentences = nil // these words and later ones wait for the repair
			}
			if p.sentences != nil {
				p.sentences.Add(q.result.spoken())
			}
		}
	}
	return nil
}

// Sketch implements asr.Sketcher. It encodes the speech with little silence
// after it, and takes the best token at each step: for a few seconds of speech
// this costs a small part of Transcribe, and nothing is repaired. One pass of
// the decoder checks all tokens of opt.Draft.Text.
func (e *Engine) Sketch(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	language, err := asr.Language("whisper: "+e.name, opt.Language, e.languages)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	opt.BeamSize, opt.Temperature, opt.NoSpeechThreshold = 1, 0, opt.DiscardAbove()
	t := &task{opt: opt, language: language, speech: speech}
	var jobs []*job
	for _, w := range decode.Pack(speech, pcm, e.packing) {
		j := e.textJob(pcm, w, textPlan{t: t, language: language})
		j.brief = true
		jobs = append(jobs, j)
	}
	if draft := opt.Draft.Text; len(jobs) == 1 && draft != "" && e.cpu.rules.unmarked {
		if spec.Spaced(language) {
			draft = " " + draft
		}
		jobs[0].draft = e.cpu.Tokenize(draft)
	}
	var words []decode.Word
	if err := e.decode(ctx, jobs, opt, func(int) {}); err != nil {
		return nil, err
	}
	transcript := &asr.Transcript{Language: language}
	for _, j := range jobs {
		r := e.conclude(j, t)
		transcript.Stats.Add(r.stats)
		if !r.attempt.degenerate() {
			words = append(words, r.words...)
		}
	}
	decode.Settle(words, speech)
	transcript.Segments = decode.Sentences(words, opt.WordTimestamps)
	return transcript, nil
}
