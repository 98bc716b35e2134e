package whisper

import (
	"context"
	"errors"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// errAborted is returned by a native call that was aborted.
var errAborted = errors.New("whisper: decode aborted")

const (
	// leastSamples is the shortest sound given to libwhisper, which ignores
	// sounds shorter than 0.1 s; shorter sounds are padded with silence.
	leastSamples = audio.SampleRate / 2
	// mostDecoders is libwhisper's limit of concurrent beams or samples.
	mostDecoders = 8
)

// onDevice is the libwhisper backend: it decodes one window at a time.
type onDevice struct {
	*weights
	turn    chan struct{} // held by the decode that uses the device
	running sync.WaitGroup

	mu   sync.Mutex
	idle *state // the last decode's state; it holds buffers only
}

func newOnDevice(w *weights) *onDevice { return &onDevice{weights: w, turn: make(chan struct{}, 1)} }

// decode implements backend.
func (d *onDevice) decode(ctx context.Context, jobs []*job, opt asr.Options, done func(i int)) error {
	for i, j := range jobs {
		leave, err := opt.Pass(ctx)
		if err != nil {
			return err
		}
		err = d.run(ctx, func(n *visit) error { return n.search(j) })
		leave()
		if err != nil {
			return err
		}
		done(i)
	}
	return nil
}

// hear implements backend.
func (d *onDevice) hear(ctx context.Context, pcm *audio.PCM, windows []decode.Window, _ bool) ([]heard, error) {
	list := make([]heard, len(windows))
	for i, w := range windows {
		j := &job{pcm: pcm, window: w}
		err := d.run(ctx, func(n *visit) error {
			s, err := n.ready(false)
			if err != nil {
				return err
			}
			if list[i].languages, err = s.detect(j.samples(leastSamples), 1); err != nil {
				return err
			}
			list[i].noSpeech, err = s.noSpeech(1)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (d *onDevice) free() {
	d.running.Wait()
	if d.idle != nil {
		d.idle.free()
	}
	d.weights.free()
}

// run does native work in a separate goroutine. When ctx ends, it asks the work
// to stop and returns immediately; the work ends in the background.
func (d *onDevice) run(ctx context.Context, work func(*visit) error) error {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	n := &visit{device: d, ctx: ctx}
	done := make(chan error, 1)
	d.running.Go(func() {
		err := work(n)
		n.free()
		<-d.turn
		done <- err
	})
	select {
	case err := <-done:
		if errors.Is(err, errAborted) {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// visit is the work of one goroutine with libwhisper.
type visit struct {
	device *onDevice
	ctx    context.Context
	state  *state
}

// ready returns a state. Random numbers depend on the state's earlier decodes,
// so sampling requires a fresh state.
func (n *visit) ready(fresh bool) (s *state, err error) {
	n.device.mu.Lock()
	defer n.device.mu.Unlock()
	if n.state == nil {
		n.state, n.device.idle = n.device.idle, nil
	}
	if n.state != nil && fresh {
		n.state.free()
		n.state = nil
	}
	if n.state == nil {
		n.state, err = n.device.newState()
	}
	return n.state, err
}

// free keeps the state for the next.
func (n *visit) free() {
	n.device.mu.Lock()
	defer n.device.mu.Unlock()
	if n.state != nil && !n.device.lost {
		n.device.idle = n.state
	}
}

// search does the searches of a job.
func (n *visit) search(j *job) error {
	samples := j.samples(leastSamples)
	for r := j.plan.next(nil); r != nil; {
		f, err := n.find(j, r, samples)
		if err != nil {
			return err
		}
		if f.looped {
			j.stats.Loops++
		}
		r = j.plan.next(f)
	}
	return nil
}

// find does one search. It draws the first 8 samples together, and the others
// after them.
func (n *visit) find(j *job, r *request, samples []float32) (*found, error) {
	var best *found
	for drawn := 0; drawn < r.width(); drawn += mostDecoders {
		f, err := n.decode(j, r, min(r.width()-drawn, mostDecoders), samples)
		if err != nil {
			return nil, err
		}
		if best == nil || len(f.tokens) > 0 && (len(best.tokens) == 0 || f.better(best.attempt)) {
			best = f
		}
	}
	return best, nil
}

// decode runs libwhisper's search once.
func (n *visit) decode(j *job, r *request, width int, samples []float32) (*found, error) {
	s, err := n.ready(r.temperature > 0)
	if err != nil {
		return nil, err
	}
	call, err := n.device.newCall()
	if err != nil {
		return nil, err
	}
	defer call.free()
	defer context.AfterFunc(n.ctx, call.abort)()
	tokens, err := s.decode(call, r, width, samples)
	if err != nil {
		return nil, err
	}
	f := &found{attempt: assess(n.device, tokens, false)}
	f.temperature = r.temperature
	if len(f.tokens) > 0 {
		f.noSpeech, err = s.noSpeech(1)
	}
	encodes, steps := call.work()
	j.stats.EncoderPasses += encodes
	j.stats.DecoderSteps += steps
	f.steps = steps
	return f, err
}
