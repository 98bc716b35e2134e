package whisper

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// Repair decodes again: windows of degenerate text, and speech that a text left
// without words. It may cost one encoder pass per windowsPerRepair windows of a
// transcription (rounded up), and per window at most twice its first decode, so
// that music, noise or singing taken for speech cannot multiply the work.
//
// In longer recordings, windows whose only fault is speech without words are
// repaired during the first pass, so that their sentences need not wait for its
// end: in one and a half times as many passes. All repairs together take at
// most twice as many.
const (
	windowsPerRepair = 4
	// maxRounds bounds how often a repair's remaining gaps are repaired again.
	maxRounds = 6
	// fillLead and fillTail are the seconds of sound decoded before and after
	// speech without words, unless they are speech themselves.
	fillLead, fillTail = 0.05, 0.3
)

// bare is a stretch of speech that the text of a window leaves without words.
type bare struct {
	window     int     // index of the window
	before     int     // index of the word after the stretch
	start, end float64 // seconds of the file
	rest       bool    // the text ended before the stretch, rather than skipping it
	sure       float64 // the probability that it is speech
}

func (b bare) seconds() float64 { return b.end - b.start }

// mended holds the words of a repaired stretch.
type mended struct {
	bare
	words []decode.Word
}

// repair is the second pass over the windows of a transcription.
type repair struct {
	e       *Engine
	t       *task
	pcm     *audio.PCM
	windows []decode.Window
	results []result
	left    int    // encoder passes that may still be spent
	redone  []bool // windows decoded again, by index
	open    []bare
	found   []mended
	stats   asr.Stats
}

// patch is an encoder pass of a repair: over one window, or packed stretches.
type patch struct {
	window    decode.Window
	again     int // the window's index, negative for stretches
	stretches []bare
	room      int // samples that further stretches may have
	stats     asr.Stats
	attempt   attempt
	language  string
	noSpeech  float64
	worth     float64 // seconds of speech that may be gained
}

// repairs returns the encoder passes that the repair of n windows may cost.
func repairs(n int) int { return (n + windowsPerRepair - 1) / windowsPerRepair }

// repair decodes the failures of the first pass again, in at most left encoder
// passes, and stores the new text in results. It returns the work done.
func (e *Engine) repair(ctx context.Context, pcm *audio.PCM, windows []decode.Window, results []result, left int, t *task) (asr.Stats, error) {
	r := repair{e: e, t: t, pcm: pcm, windows: windows, results: results, left: left, redone: make([]bool, len(windows))}
	if err := r.run(ctx); err != nil {
		return r.stats, err
	}
	r.stats.Untried += len(r.open)
	for i := range results {
		if r.failed(i) {
			r.stats.Untried++
		}
	}
	r.insert()
	return r.stats, nil
}

// mend repairs the speech that the text of one window left without words, in
// left encoder passes, and returns how many are left. Stretches that are still
// without words remain in its result.
func (e *Engine) mend(ctx context.Context, pcm *audio.PCM, w *part, left int, t *task) (int, error) {
	r := repair{e: e, t: t, pcm: pcm, windows: []decode.Window{w.window}, results: []result{w.result}, left: left, redone: make([]bool, 1)}
	if err := r.run(ctx); err != nil {
		return 0, err
	}
	for i := range r.open {
		at := r.open[i].before
		for _, f := range r.found {
			if f.before <= at {
				r.open[i].before += len(f.words)
			}
		}
	}
	r.insert()
	w.result = r.results[0]
	w.result.bare = r.open
	w.result.stats.Add(r.stats)
	return r.left, nil
}

// run decodes patches while there are some and passes are left.
func (r *repair) run(ctx context.Context) error {
	for i := range r.results {
		r.gather(i)
	}
	for range maxRounds {
		patches := r.choose()
		if len(patches) == 0 {
			break
		}
		if err := r.decode(ctx, patches); err != nil {
			return err
		}
		for _, p := range patches {
			r.left -= p.stats.EncoderPasses
			r.stats.Add(p.stats)
			if p.again >= 0 {
				r.replace(p)
			} else {
				r.fill(p)
			}
		}
	}
	return nil
}

// gather adds the stretches that window i leaves without words to r.open.
func (r *repair) gather(i int) {
	for _, b := range r.results[i].bare {
		b.window = i
		b.sure = 1 - r.results[i].noSpeech
		r.open = append(r.open, b)
	}
}

// failed reports whether window i's text is degenerate and not yet repaired.
func (r *repair) failed(i int) bool {
	a := r.results[i].attempt
	return !r.redone[i] && a.degenerate() && len(r.results[i].words) > 0 && r.t.opt.Temperature+temperatureStep <= 1
}

// choose takes the most valuable patches of r.open, one per remaining pass.
func (r *repair) choose() []*patch {
	var all []*patch
	for i := range r.results {
		if r.failed(i) {
			w := r.windows[i]
			all = append(all, &patch{window: w, again: i, language: r.results[i].language, worth: w.SpeechSeconds() * (1 - r.results[i].noSpeech)})
		}
	}
	// the most promising stretches first: the fullest patches come first
	slices.SortStableFunc(r.open, func(a, b bare) int {
		return cmp.Or(cmp.Compare(b.seconds()*b.sure, a.seconds()*a.sure), cmp.Compare(a.start, b.start))
	})
	all = append(all, r.pack()...)
	slices.SortStableFunc(all, func(a, b *patch) int { return cmp.Compare(b.worth, a.worth) })
	all = all[:min(len(all), max(r.left, 0))]
	r.open = slices.DeleteFunc(r.open, func(b bare) bool {
		return slices.ContainsFunc(all, func(p *patch) bool { return slices.Contains(p.stretches, b) })
	})
	return all
}

// pack puts each open stretch into the first patch that has room for it.
func (r *repair) pack() []*patch {
	var all []*patch
	for _, b := range r.open {
		n := r.piece(b).Len()
		language := r.results[b.window].language
		k := slices.IndexFunc(all, func(p *patch) bool { return p.language == language && p.room >= n })
		if k < 0 {
			k = len(all)
			all = append(all, &patch{again: -1, language: language, room: int(r.e.model.WindowSeconds * audio.SampleRate)})
		}
		all[k].room -= n
		all[k].stretches = append(all[k].stretches, b)
		all[k].worth += b.seconds() * b.sure
	}
	for _, p := range all {
		slices.SortFunc(p.stretches, func(a, b bare) int { return cmp.Compare(a.start, b.start) })
		for _, b := range p.stretches {
			piece := r.piece(b)
			if n := len(p.window.Pieces); n > 0 {
				piece = piece.Rest(float64(p.window.Pieces[n-1].End) / audio.SampleRate)
			}
			p.window.Pieces = append(p.window.Pieces, piece.Pieces...)
			p.window.Speech = append(p.window.Speech, piece.Speech...)
		}
	}
	return all
}

// piece returns a window of a stretch with a little sound before and after.
func (r *repair) piece(b bare) decode.Window {
	w := r.windows[b.window]
	from, to := b.start-fillLead, b.end+fillTail
	for _, sp := range w.Speech {
		start, end := sp.Seconds()
		if end <= b.start {
			from = max(from, end)
		}
		if start >= b.end {
			to = min(to, start)
		}
	}
	if b.rest {
		from = b.start
	}
	return w.Part(from, to)
}

// decode runs the patches in parallel.
func (r *repair) decode(ctx context.Context, patches []*patch) error {
	plain := *r.t
	plain.initial = nil
	jobs := make([]*job, len(patches))
	for i, p := range patches {
		if p.again < 0 {
			jobs[i] = r.e.textJob(r.pcm, p.window, textPlan{t: &plain, language: p.language})
			jobs[i].patch = true
			continue
		}
		jobs[i] = &job{pcm: r.pcm, window: p.window, rows: max(fallbackSamples, plain.opt.BestOf), plan: &risingPlan{
			t: &plain, language: p.language, prompt: r.e.prompt(&plain),
			steps: encoderSteps + 2*r.results[p.again].stats.DecoderSteps,
		}}
	}
	return r.e.decode(ctx, jobs, r.t.opt, func(i int) {
		p, f := patches[i], jobs[i].plan.text()
		p.stats, p.attempt, p.noSpeech = jobs[i].stats, f.attempt, f.noSpeech
		if plan, ok := jobs[i].plan.(*risingPlan); ok {
			p.stats.Fallbacks += plan.tries
		}
	})
}

// replace replaces a window's text if the new one is better.
func (r *repair) replace(p *patch) {
	i, b := p.again, p.attempt
	r.redone[i] = true
	if len(b.tokens) == 0 || (b.failed() && !b.better(r.results[i].attempt)) {
		return
	}
	r.results[i].attempt = b
	r.e.settle(&r.results[i], r.t, r.windows[i])
	r.gather(i)
}

// fill takes the words of packed stretches, except unsure text and text too
// short for its stretch, which decoders invent for noises. The stretches after
// the end of the text remain open.
func (r *repair) fill(p *patch) {
	for _, b := range p.stretches {
		if b.rest {
			r.stats.Continued++
		} else {
			r.stats.Skipped++
		}
	}
	a := p.attempt
	if len(a.tokens) == 0 || a.failed() || p.noSpeech > min(r.t.opt.NoSpeechThreshold, unsureNoSpeech) {
		return
	}
	words, _, covered, ended := readText(r.e.cpu, p.window, a)
	first, _ := p.window.Speech[0].Seconds()
	for i := range words {
		words[i].Language, words[i].NoSpeechProb = p.language, p.noSpeech
	}
	for _, b := range p.stretches {
		if ended && covered >= first+0.5 && b.end-max(covered, b.start) >= restSeconds+restSlack {
			next := b
			if next.start < covered {
				next.start, next.rest = covered, true
			}
			r.open = append(r.open, next)
			b.end = next.start
		}
		all := r.results[b.window].words
		text := unwritten(within(words, b.start, b.end), all[:b.before], all[b.before:])
		if !decode.Fills(text, b.seconds()) || meanLogProb(text) < minLogProb {
			continue
		}
		r.found = append(r.found, mended{b, text})
	}
}

// unwritten returns the words of a stretch inside a clause without its last words
// if the clause continues with the same ones, and then without its first words if
// they precede the stretch: such words were misplaced, not left out.
func unwritten(words, before, after []decode.Word) []decode.Word {
	if k := len(before) - 1; k < 0 || strings.TrimRightFunc(before[k].Text, unicode.IsPunct) != before[k].Text {
		return words
	}
	for n := min(len(words), len(after)); n > 0; n-- {
		if rest := words[:len(words)-n]; repeats(words[len(rest):], after[:n]) {
			for n := min(len(rest), len(before)); n > 0; n-- {
				if repeats(rest[:n], before[len(before)-n:]) {
					return rest[n:]
				}
			}
			return rest
		}
	}
	return words
}

// repeats reports whether words equal their neighbors. If the words last longer,
// the neighbors get their times.
func repeats(words, neighbors []decode.Word) bool {
	if !slices.EqualFunc(words, neighbors, func(a, b decode.Word) bool { return slices.Equal(lettersOf(a.Text), lettersOf(b.Text)) }) {
		return false
	}
	if n := len(words) - 1; words[n].End-words[0].Start > neighbors[n].End-neighbors[0].Start {
		for i, w := range words {
			neighbors[i].Start, neighbors[i].End = w.Start, w.End
		}
	}
	return true
}

// within returns the words whose middle lies between two times.
func within(words []decode.Word, from, to float64) (list []decode.Word) {
	for _, w := range words {
		if at := (w.Start + w.End) / 2; at >= from && at < to {
			list = append(list, w)
		}
	}
	return list
}

// meanLogProb is the mean over the words' tokens.
func meanLogProb(words []decode.Word) float64 {
	var sum float64
	var n int
	for _, w := range words {
		sum, n = sum+w.LogProb, n+w.Tokens
	}
	if n == 0 {
		return math.Inf(-1)
	}
	return sum / float64(n)
}

// insert inserts the found words into their windows.
func (r *repair) insert() {
	slices.SortStableFunc(r.found, func(a, b mended) int {
		return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(b.before, a.before), cmp.Compare(b.start, a.start))
	})
	for _, f := range r.found { // from last to first, so that indexes stay valid
		r.results[f.window].words = slices.Insert(r.results[f.window].words, f.before, f.words...)
	}
}
