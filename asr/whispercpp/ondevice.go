package whispercpp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/models"
)

const (
	// leastSamples is the shortest sound given to libwhisper, which ignores
	// sounds shorter than 0.1 s; shorter sounds are padded with silence.
	leastSamples = audio.SampleRate / 2
	// mostDecoders is libwhisper's limit of concurrent beams or samples.
	mostDecoders = 8
)

// onDevice is a model on a device, which decodes one window at a time.
type onDevice struct {
	*weights
	file       *whispernet.File // closed
	translates bool

	slot    chan struct{} // held by the computation that uses the device
	life    context.Context
	end     context.CancelCauseFunc
	running sync.WaitGroup
	freed   sync.Once
	state   *state // of the last computation; it holds buffers only
}

// openDevice loads a model on a device.
func openDevice(m *models.Model, number int, log *slog.Logger) (*onDevice, error) {
	f, err := whispernet.OpenFile(m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	setNativeLogger(log)
	w, err := loadWeights(f, number)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDevice, err)
	}
	d := &onDevice{weights: w, file: f, slot: make(chan struct{}, 1), translates: f.Multilingual() && !m.NoTranslation}
	d.life, d.end = context.WithCancelCause(context.Background())
	return d, nil
}

// close stops and awaits all computations and frees the model.
func (d *onDevice) close() {
	d.end(whisper.ErrClosed)
	d.freed.Do(func() {
		d.slot <- struct{}{} // the slot is never released, so no further computation begins
		d.running.Wait()
		if d.state != nil {
			d.state.free()
		}
		d.weights.free()
	})
}

// run computes in a separate goroutine. When ctx ends, or the model is closed,
// it asks the computation to stop and returns the cause immediately; the
// computation ends in the background. Random numbers depend on the state's
// earlier decodes, so sampling requires a fresh one.
func (d *onDevice) run(ctx context.Context, fresh bool, compute func(context.Context, *state) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.life, func() { cancel(context.Cause(d.life)) })
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		stop()
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	d.running.Go(func() {
		err := context.Cause(ctx)
		if err == nil {
			err = d.compute(ctx, fresh, compute)
		}
		stop()
		<-d.slot
		done <- err
	})
	select {
	case err := <-done:
		cancel(nil)
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compute calls f with a state.
func (d *onDevice) compute(ctx context.Context, fresh bool, f func(context.Context, *state) error) (err error) {
	if d.lost {
		return errDevice
	}
	if d.state != nil && fresh {
		d.state.free()
		d.state = nil
	}
	if d.state == nil {
		if d.state, err = d.newState(); err != nil {
			return err
		}
	}
	return f(ctx, d.state)
}

// samples returns the sound of a window, padded with silence.
func samples(w decode.Window, pcm *audio.PCM) []float32 {
	x := w.Samples(make([]float32, 0, max(w.Len(), leastSamples)), pcm)
	if len(x) < leastSamples {
		x = x[:leastSamples]
	}
	return x
}
