package silero

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/vad"
)

// sequence is an unrolled network (see unroll) with the values of its file.
type sequence struct {
	front, cell *ort.Session
}

// openSequence unrolls a model; it returns nil for an unknown network.
func openSequence(model ort.Source) (*sequence, error) {
	all, err := ort.Weights(model)
	if err != nil {
		return nil, err
	}
	front, cell := unroll(all)
	if front == nil {
		return nil, nil
	}
	part := ort.Source{Name: model.String(), Data: front}
	s := &sequence{}
	if s.front, err = ort.Open(part, ort.Options{}); err != nil {
		return nil, err
	}
	part.Data = cell
	if s.cell, err = ort.Open(part, ort.Options{}); err != nil {
		return nil, errors.Join(err, s.front.Close())
	}
	return s, nil
}

func (s *sequence) close() error { return errors.Join(s.front.Close(), s.cell.Close()) }

// sequenceRows is the number of windows per call (2 s). More were not faster;
// fewer are slower, because the front's output stays in the CPU's caches.
const sequenceRows = 64

// reel is the memory of one worker: a block of windows and its results.
type reel struct {
	front, cell *ort.Binding
	input       []float32 // rows × (context + window)
	probs       []float32
}

// state is carried from block to block, regardless of which worker computes it.
type state struct{ h, c, hn, cn *ort.Tensor }

func newState() state {
	t := func() *ort.Tensor { return ort.NewFloat32([]int64{1, 1, featureSize}, make([]float32, featureSize)) }
	return state{t(), t(), t(), t()}
}

func (st state) next() {
	copy(st.h.Float32(), st.hn.Float32())
	copy(st.c.Float32(), st.cn.Float32())
}

func (s *sequence) newReel(rows int, st state) (*reel, error) {
	n := int64(rows)
	r := &reel{input: make([]float32, rows*rowWidth), probs: make([]float32, rows)}
	features := ort.NewFloat32([]int64{n, 1, featureSize}, make([]float32, n*featureSize))
	var err error
	r.front, err = s.front.Bind(map[string]*ort.Tensor{"input": ort.NewFloat32([]int64{n, rowWidth}, r.input)},
		map[string]*ort.Tensor{"features": features})
	if err != nil {
		return nil, err
	}
	r.cell, err = s.cell.Bind(map[string]*ort.Tensor{"features": features, "h": st.h, "c": st.c},
		map[string]*ort.Tensor{"probs": ort.NewFloat32([]int64{n}, r.probs), "hn": st.hn, "cn": st.cn})
	if err != nil {
		return nil, errors.Join(err, r.front.Close())
	}
	return r, nil
}

func (r *reel) close() error { return errors.Join(r.front.Close(), r.cell.Close()) }

// run computes a recording. The workers take blocks in turn. They run the front
// in parallel and the cell in the order of the blocks, so the number of workers
// does not change the result.
func (s *sequence) run(ctx context.Context, check func(context.Context) error, pcm *audio.PCM, probs []float32, threads int) error {
	rows := min(sequenceRows, len(probs))
	blocks := (len(probs) + rows - 1) / rows
	threads = min(threads, blocks)
	st := newState()
	turn := make([]chan struct{}, threads) // signals that a worker's block may go through the cell
	for i := range turn {
		turn[i] = make(chan struct{}, 1)
	}
	turn[0] <- struct{}{}
	workers, run := errgroup.WithContext(ctx)
	for k := range threads {
		workers.Go(func() error {
			r, err := s.newReel(rows, st)
			if err != nil {
				return err
			}
			defer func() { _ = r.close() }()
			for b := k; b < blocks; b += threads {
				if err := check(run); err != nil {
					return err
				}
				for i := range rows {
					fillWindow(r.input[i*rowWidth:(i+1)*rowWidth], contextSamples, pcm, b*rows+i)
				}
				if err := r.front.Run(); err != nil {
					return err
				}
				select {
				case <-turn[k]:
				case <-run.Done():
					return run.Err()
				}
				if err := r.cell.Run(); err != nil {
					return err
				}
				st.next()
				turn[(k+1)%threads] <- struct{}{}
				part := probs[b*rows : min((b+1)*rows, len(probs))]
				copy(part, r.probs)
				if err := bound(part); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := workers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// sameWithin bounds the differences between an unrolled network and its file,
// which other orders of sums cause; the largest seen was 1e-6.
const sameWithin = 1e-4

// same compares an unrolled network with its file, called window by window,
// over synthetic sound that drives the probabilities up and down.
func (s *sequence) same(original *ort.Session, l layout) (bool, error) {
	const windows = 80
	pcm := audio.FromSamples(testSound(windows * vad.Window))
	got := make([]float32, windows)
	err := s.run(context.Background(), func(context.Context) error { return nil }, pcm, got, 1)
	if err != nil {
		return false, err
	}
	ln, err := newLane(original, l, 1)
	if err != nil {
		return false, err
	}
	defer func() { _ = ln.close() }()
	for w := range windows {
		ln.fill(0, pcm, w)
		if err := ln.step(); err != nil {
			return false, err
		}
		if !(math.Abs(float64(ln.probs[0]-got[w])) <= sameWithin) {
			return false, nil
		}
	}
	return true, nil
}

// testSound returns pulses through two moving resonances, a pause, and noise.
func testSound(samples int) []float32 {
	const period = audio.SampleRate * 5 / 4
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, samples)
	var a, b [2]float64 // the last two values of each resonance
	next := 0
	for i := range x {
		switch at := i % period; {
		case at < period*16/25: // 0.8 s
			pulse := 0.0
			if i >= next {
				pulse = 0.2
				next = i + 110 + i/64%60 // 94 to 145 Hz
			}
			sweep := float64(at) / period
			resonate := func(y *[2]float64, turn, keep float64) float64 {
				v := pulse + 2*keep*math.Cos(2*math.Pi*turn)*y[0] - keep*keep*y[1]
				y[0], y[1] = v, y[0]
				return v
			}
			x[i] = float32(resonate(&a, 0.03+0.03*sweep, 0.98) + 0.5*resonate(&b, 0.14-0.06*sweep, 0.97))
		case at < period*20/25:
		default:
			x[i] = 0.1 * (2*r.Float32() - 1)
		}
	}
	return x
}
