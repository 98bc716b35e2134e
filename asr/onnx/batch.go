package onnx

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/ort"
)

// Windows are decoded in groups, in the order of the recording, so that the
// first sentences are known early: the first group has firstGroup windows, each
// later one nextGroup. Within a group, windows of similar length share a batch.
const firstGroup, nextGroup = 8, 32

// groups returns the ends of the groups of n windows.
func groups(n int) (ends []int) {
	for end := min(firstGroup, n); ; end = min(end+nextGroup, n) {
		if ends = append(ends, end); end == n {
			return ends
		}
	}
}

// decode runs all windows in batches of similar length, several at a time.
// Which windows share a batch depends on the windows alone, so the text does
// not depend on opt.Parallel. settle, if not nil, is called with the hypotheses
// of the first groups whenever another one is complete, never concurrently.
func (e *Engine) decode(ctx context.Context, pcm *audio.PCM, windows []decode.Window, req request, opt asr.Options, settle func([]hypothesis)) ([]hypothesis, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return nil, fmt.Errorf("%s: %w", e.name, ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	lengths := make([]int, len(windows))
	var total float64
	for i, w := range windows {
		lengths[i] = w.Len()
		total += w.SpeechSeconds()
	}
	most := e.batch
	if !e.net.batchable() {
		most = 1
	}
	hyps := make([]hypothesis, len(windows))
	var progress sync.Mutex
	var done float64
	ends := groups(len(windows))
	var work [][]int
	left := make([]int, len(ends)) // windows of each group that are not decoded
	group := make([]int, len(windows))
	for g, end := range ends {
		begin := 0
		if g > 0 {
			begin = ends[g-1]
		}
		left[g] = end - begin
		for _, batch := range batches(lengths[begin:end], most, int(e.window*audio.SampleRate)) {
			for k := range batch {
				batch[k] += begin
				group[batch[k]] = g
			}
			work = append(work, batch)
		}
	}
	known := 0 // groups whose sentences were passed to settle
	pool := ort.NewWorkerPool(min(max(opt.Parallel, 1), len(work)))
	defer pool.Close()
	err := pool.Do(ctx, len(work), func(b int) error {
		batch := work[b]
		leave, err := opt.Pass(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		defer leave()
		feats := make([]matrix, len(batch))
		var samples []float32
		for k, i := range batch {
			samples = windows[i].Samples(samples[:0], pcm)
			if missing := shortestInput - len(samples); missing > 0 {
				samples = append(samples, make([]float32, missing)...)
			}
			feats[k] = e.net.features(samples)
		}
		out, err := e.net.run(ctx, feats, req)
		if err != nil {
			return err
		}
		for k, i := range batch {
			e.attend(windows[i], windows[i].Samples(samples[:0], pcm), &out[k])
		}
		progress.Lock()
		defer progress.Unlock()
		for k, i := range batch {
			hyps[i] = out[k]
			done += windows[i].SpeechSeconds()
			left[group[i]]--
		}
		before := known
		for known < len(left) && left[known] == 0 {
			known++
		}
		if settle != nil && known > before && known < len(left) {
			settle(hyps[:ends[known-1]])
		}
		if opt.Progress != nil {
			opt.Progress(done, total)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return hyps, nil
}

// batches groups indices of windows of similar length, the longest first. A
// batch holds at most most windows and, padded, budget samples; a single window
// may exceed it. Large vocabularies need 1.7 MB of scores a second.
func batches(lengths []int, most, budget int) [][]int {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })
	var out [][]int
	for _, i := range order {
		if n := len(out) - 1; n >= 0 && len(out[n]) < most &&
			(len(out[n])+1)*lengths[out[n][0]] <= budget && float64(lengths[i]) >= similar*float64(lengths[out[n][0]]) {
			out[n] = append(out[n], i)
			continue
		}
		out = append(out, []int{i})
	}
	return out
}
