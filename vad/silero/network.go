package silero

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/vad"
)

// network is a network in two parts, see unroll.
type network struct {
	front, cell *ort.Session
}

// openNetwork builds the two parts from a file's weights.
func openNetwork(model ort.Source) (*network, error) {
	all, err := ort.Weights(model)
	if err != nil {
		return nil, err
	}
	front, cell := unroll(all)
	if front == nil {
		return nil, fmt.Errorf("%s: %w", model, errOtherLayers)
	}
	part := ort.Source{Name: model.String(), Data: front}
	n := &network{}
	if n.front, err = ort.Open(part, ort.Options{}); err != nil {
		return nil, err
	}
	part.Data = cell
	if n.cell, err = ort.Open(part, ort.Options{}); err != nil {
		return nil, errors.Join(err, n.front.Close())
	}
	return n, nil
}

func (n *network) close() error { return errors.Join(n.front.Close(), n.cell.Close()) }

// blockWindows is the number of windows per call (2 s). More were not faster;
// fewer are slower, because the front's output stays in the CPU's caches.
const blockWindows = 64

// state is carried from block to block, regardless of which worker computes it.
type state struct{ h, c, hn, cn *ort.Tensor }

func newState() state {
	t := func() *ort.Tensor { return ort.NewFloat32([]int64{1, 1, featureSize}, make([]float32, featureSize)) }
	return state{t(), t(), t(), t()}
}

// reel is the memory of one worker: a block of windows and its results.
type reel struct {
	network             *network
	state               state
	input               []float32 // rows × (context + window)
	probs               []float32
	sound, features     map[string]*ort.Tensor // of the front
	cell, probabilities map[string]*ort.Tensor
}

func (n *network) newReel(rows int, st state) *reel {
	count := int64(rows)
	r := &reel{network: n, state: st, input: make([]float32, rows*rowWidth), probs: make([]float32, rows)}
	features := ort.NewFloat32([]int64{count, 1, featureSize}, make([]float32, rows*featureSize))
	r.sound = map[string]*ort.Tensor{"input": ort.NewFloat32([]int64{count, rowWidth}, r.input)}
	r.features = map[string]*ort.Tensor{"features": features}
	r.cell = map[string]*ort.Tensor{"features": features, "h": st.h, "c": st.c}
	r.probabilities = map[string]*ort.Tensor{"probs": ort.NewFloat32([]int64{count}, r.probs), "hn": st.hn, "cn": st.cn}
	return r
}

// runFront computes the features of the block; runCell computes the
// probabilities and the next state from them.
func (r *reel) runFront() error { return r.network.front.Into(r.sound, r.features) }

func (r *reel) runCell() error {
	if err := r.network.cell.Into(r.cell, r.probabilities); err != nil {
		return err
	}
	copy(r.state.h.Float32(), r.state.hn.Float32())
	copy(r.state.c.Float32(), r.state.cn.Float32())
	return bound(r.probs)
}

// run computes the probabilities of consecutive windows, which window copies to
// dst, with the 64 samples before them. It begins with the state st and leaves
// there the state after the last window, provided that len(probs) is at most
// blockWindows or a multiple of it; otherwise silence is added to the last block.
//
// The workers take blocks in turn. They run the front in parallel and the cell in
// the order of the blocks, so the number of workers does not change the result.
func (n *network) run(ctx context.Context, check func(context.Context) error, window func(dst []float32, w int), st state, probs []float32, threads int) error {
	rows := min(blockWindows, len(probs))
	blocks := (len(probs) + rows - 1) / rows
	threads = min(threads, blocks)
	turn := make([]chan struct{}, threads) // signals that a worker's block may go through the cell
	for i := range turn {
		turn[i] = make(chan struct{}, 1)
	}
	turn[0] <- struct{}{}
	workers, run := errgroup.WithContext(ctx)
	for k := range threads {
		workers.Go(func() error {
			r := n.newReel(rows, st)
			for b := k; b < blocks; b += threads {
				if err := check(run); err != nil {
					return err
				}
				for i := range rows {
					window(r.input[i*rowWidth:(i+1)*rowWidth], b*rows+i)
				}
				if err := r.runFront(); err != nil {
					return err
				}
				select {
				case <-turn[k]:
				case <-run.Done():
					return run.Err()
				}
				if err := r.runCell(); err != nil {
					return err
				}
				turn[(k+1)%threads] <- struct{}{}
				copy(probs[b*rows:], r.probs)
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

// fillWindow copies a window of a recording and the samples before it to dst,
// with zeros outside of the recording.
func fillWindow(dst []float32, pcm *audio.PCM, w int) {
	from, to := w*vad.Window-contextSamples, (w+1)*vad.Window
	n := 0
	if from < 0 {
		n, from = contextSamples, 0
		clear(dst[:n])
	}
	n = len(pcm.Append(dst[:n], from, to))
	clear(dst[n:])
}

// bound clamps probabilities to 0 and 1, which a sigmoid exceeds only by
// rounding. Anything else, including NaN, means that the model is broken.
func bound(probs []float32) error {
	for i, p := range probs {
		if !(p >= -1e-4 && p <= 1+1e-4) {
			return fmt.Errorf("%w: %v as the probability of speech", errBroken, p)
		}
		probs[i] = min(max(p, 0), 1)
	}
	return nil
}

var errBroken = errors.New("the voice activity model gives impossible values")
