package whisper

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/whispernet"
)

const (
	// mostOpen is the number of windows that all workers of a transcription
	// have open at a time: each pass of a decoder reads the model's weights
	// once for all its windows. Each worker has at least leastOpen.
	mostOpen, leastOpen = 8, 2
	// mostBytes bounds the memory of encoded windows: the open windows of all
	// workers, and the windows stored between language detection and
	// transcription. Each worker may always open one window. With 8-bit weights,
	// mostOpen windows of any published model but the large ones fit.
	mostBytes = 1 << 30
	// fewThreads limits the threads of a worker that takes over the threads of
	// ended workers. Two threads decode a window 1.5 times as fast as one, so two
	// workers decode more.
	fewThreads = 4
	// alone, stagger and evenShare apply if a caller waits for the sentences,
	// because windows that begin together also end together. The first windows
	// are decoded one by one, each by all cores, and the next window is encoded
	// before a second worker begins. A worker of several windows opens the next
	// one after stagger decoder steps, a quarter of a window's, at most one in
	// evenShare.
	alone, stagger, evenShare = 2, 24, 4
	// slotLength is how long a worker computes before others pass the gate.
	slotLength = 50 * time.Millisecond
)

// windowsEach returns how many of n windows (size bytes each) a worker opens.
func windowsEach(n, workers, bytes int) int {
	return min(max(mostOpen/workers, leastOpen), (n+workers-1)/workers, max(mostBytes/bytes/workers, 1))
}

// batch is one call of decode.
type batch struct {
	cpu  *cpu
	jobs []*job
	next atomic.Int64 // index of the next job to take
	free atomic.Int64 // threads of workers that have ended
	stop *whispernet.Stop
	done func(i int)
}

// decode is Engine.decode.
func (c *cpu) decode(ctx context.Context, jobs []*job, opt asr.Options, done func(i int)) error {
	if len(jobs) == 0 {
		return nil
	}
	left := len(jobs)
	if first := min(alone, left-1); opt.Settled != nil && first > 0 {
		if err := c.decode(ctx, jobs[:first], opt, done); err != nil {
			return err
		}
		left -= first
	}
	group, ctx := errgroup.WithContext(ctx)
	b := &batch{cpu: c, jobs: jobs, stop: new(whispernet.Stop), done: done}
	b.next.Store(int64(len(jobs) - left))
	defer context.AfterFunc(ctx, b.stop.Now)()
	cores := max(opt.Parallel, 1)
	workers := min(left, cores)
	threads := cores / workers
	open := windowsEach(left, workers, c.model.WindowBytes())
	if opt.Settled != nil {
		open = max(1, min(open, left/workers/evenShare))
	}
	for i := range workers {
		begun := make(chan struct{})
		w := &worker{batch: b, threads: threads, most: open, slot: slot{ctx: ctx, opt: opt}, begun: begun}
		if opt.Settled != nil {
			w.idle = threads * (workers - 1 - i)
		}
		group.Go(w.run)
		if opt.Settled != nil {
			<-begun
		}
	}
	return group.Wait()
}

// worker decodes jobs, several side by side, with its own decoder.
type worker struct {
	*batch
	threads, most int
	idle          int           // further threads until it has encoded a window
	begun         chan struct{} // closed then
	decoder       *whispernet.Decoder
	slot          slot
	open          []*opened
	columns       []whispernet.Column
	closed        []int // jobs that are decided since the last report
}

// opened is a job that is being decoded.
type opened struct {
	i      int
	job    *job
	window *whispernet.Window
	search *search
}

func (w *worker) run() error {
	defer w.begin()
	if err := w.slot.enter(); err != nil {
		return err
	}
	defer w.slot.leave()
	w.decoder = w.cpu.model.NewDecoder(w.threads)
	defer func() {
		w.decoder.Free()
		w.free.Add(int64(w.threads))
		for _, o := range w.open {
			o.window.Free()
		}
	}()
	for {
		if err := w.fill(); err != nil {
			return err
		}
		if len(w.open) == 0 {
			return nil
		}
		if err := w.step(); err != nil {
			return err
		}
	}
}

// join takes the threads of workers that have ended, up to fewThreads.
func (w *worker) join() {
	free := w.free.Load()
	more := min(free, int64(fewThreads-w.threads))
	if more > 0 && w.free.CompareAndSwap(free, free-more) {
		w.threads += int(more)
		w.decoder.Free()
		w.decoder = w.cpu.model.NewDecoder(w.threads)
	}
}

// begin lets the other workers use their cores.
func (w *worker) begin() {
	if w.begun != nil {
		close(w.begun)
	}
	w.idle, w.begun = 0, nil
}

// fill opens further jobs while there is room for them.
func (w *worker) fill() error {
	for len(w.open) < w.most {
		if n := len(w.open); n > 0 && w.slot.opt.Settled != nil && w.open[n-1].job.stats.DecoderSteps < stagger {
			return nil
		}
		i := int(w.next.Add(1)) - 1
		if i >= len(w.jobs) {
			return nil
		}
		if err := w.slot.pause(); err != nil {
			return err
		}
		o := &opened{i: i, job: w.jobs[i]}
		if f := o.job.finder; f != nil {
			o.job.window, o.job.echoes = f.Distinct(o.job.window, o.job.pcm)
		}
		var err error
		if o.window, err = w.cpu.encoded(o.job, w.threads+w.idle, w.stop); err != nil {
			return err
		}
		w.begin()
		o.job.stats.EncoderPasses++
		w.open = append(w.open, o)
		o.search = w.cpu.search(o.window, o.job.plan.next(nil))
		o.search.draft = o.job.draft[:min(len(o.job.draft), o.search.most-1)]
	}
	return nil
}

// step runs one decoder pass for all open jobs and closes decided ones.
func (w *worker) step() error {
	if err := w.slot.pause(); err != nil {
		return err
	}
	w.join()
	w.columns = w.columns[:0]
	for _, o := range w.open {
		w.columns = o.search.columns(w.columns, w.cpu.size)
	}
	if err := w.decoder.Step(w.columns, w.stop); err != nil {
		return failure(err)
	}
	still := w.open[:0]
	for i, o := range w.open {
		o.job.stats.DecoderSteps++
		o.search.advance()
		if o.search.over && !w.again(o) {
			again, err := w.reconsider(o)
			if again {
				still = append(still, o)
				continue
			}
			if err == nil {
				err = w.name(o)
			}
			if err == nil && !o.job.brief { // a text that continues needs no times
				err = w.time(o)
			}
			if err != nil {
				w.open = slices.Concat(still, w.open[i:]) // without the closed ones
				return failure(err)
			}
			w.close(o)
			continue
		}
		still = append(still, o)
	}
	w.open = still
	// done may wait for a core, so it is called without holding one.
	for _, i := range w.closed {
		w.slot.leave()
		if w.slot.ctx.Err() == nil {
			w.done(i)
		}
	}
	w.closed = w.closed[:0]
	return context.Cause(w.slot.ctx)
}

// again begins the next search of a job, if its plan asks for one.
func (w *worker) again(o *opened) bool {
	best := o.search.best()
	f := &outcome{attempt: assess(w.cpu, best.tokens, best.looped), noSpeech: o.search.noSpeech, steps: o.search.steps}
	f.languages, f.other = o.search.languages, o.search.other
	f.temperature = o.search.temperature
	if f.looped {
		o.job.stats.Loops++
	}
	r := o.job.plan.next(f)
	if r == nil {
		return false
	}
	o.window.Forget()
	o.search = w.cpu.search(o.window, r)
	return true
}

// reconsider begins the search of a doubtful text again, with all silence after
// the sound, if the first search encoded only a part of the silence. After that
// search it keeps the likelier text.
func (w *worker) reconsider(o *opened) (bool, error) {
	plan, ok := o.job.plan.(*textPlan)
	if ok && plan.thin != nil {
		if plan.thin.best.better(plan.best.attempt) {
			*plan = *plan.thin
		}
		return false, nil
	}
	if !ok || !w.cpu.thins(o.job) || o.job.brief || o.job.patch || len(plan.best.tokens) == 0 || plan.best.avgLogProb >= thinLogProb {
		return false, nil
	}
	thin := *plan
	o.job.whole, plan.thin = true, &thin
	window, err := w.cpu.encoded(o.job, w.threads, w.stop)
	if err != nil {
		return false, err
	}
	o.job.stats.EncoderPasses++
	o.window.Free()
	o.window, o.search = window, w.cpu.search(window, plan.next(nil))
	return true, nil
}

// close frees or stores the window of a decided job.
func (w *worker) close(o *opened) {
	if o.job.keep {
		o.window.Forget()
		w.cpu.store(o.job, o.window)
	} else {
		o.window.Free()
	}
	w.closed = append(w.closed, o.i)
}

// slot is a worker's place at the gate that it shares with all other computation.
type slot struct {
	ctx    context.Context
	opt    asr.Options
	out    func()
	passed time.Time
}

// enter waits for a core.
func (s *slot) enter() (err error) {
	s.out, err = s.opt.Pass(s.ctx)
	s.passed = time.Now()
	return err
}

// leave returns the core.
func (s *slot) leave() {
	if s.out != nil {
		s.out()
	}
	s.out = nil
}

// pause lets others compute after each slotLength and then enters the gate.
func (s *slot) pause() error {
	if err := s.ctx.Err(); err != nil {
		return context.Cause(s.ctx)
	}
	s.opt.ReportWork()
	if s.out != nil && time.Since(s.passed) < slotLength {
		return nil
	}
	s.leave()
	return s.enter()
}
