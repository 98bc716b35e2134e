package whisper

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph/internal/decode"
)

// The cost of a window, for distributing windows: an encoder pass costs as much
// as decoding the text of encoderSpeech seconds of speech (base, beam 5), and
// two threads on one window are threadYield times as fast as two on two
// windows. Neither has an influence on any text.
const (
	encoderSpeech = 25.0
	threadYield   = 0.9
)

// shares describes how windows are distributed over the cores.
type shares struct {
	// single are the windows, by index, that states of one thread take one after the
	// other, the most expensive first: what is begun last then ends early.
	single []int
	// joint are those that are decoded after them, side by side, by threads each. They
	// are what would leave cores idle: of 17 windows on two cores, the last one.
	joint   []int
	threads int
}

// share shares windows out among cores. A window's text does not depend on how.
func share(windows []decode.Window, cores int) shares {
	cost := make([]float64, len(windows))
	order := make([]int, len(windows))
	for i, w := range windows {
		cost[i], order[i] = encoderSpeech+w.SpeechSeconds(), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cost[b], cost[a]) })
	rest := len(windows) % cores
	if rest == 0 || cores/rest < 2 {
		return shares{single: order}
	}
	threads, first := cores/rest, len(order)-rest
	joint := finish(order[:first], cost, cores) + cost[order[first]]/(1+threadYield*float64(threads-1))
	if finish(order, cost, cores) <= joint {
		return shares{single: order}
	}
	return shares{single: order[:first], joint: order[first:], threads: threads}
}

// finish is when the last of the windows is done if each core takes the next when it
// is free.
func finish(order []int, cost []float64, cores int) float64 {
	busy := make([]float64, cores)
	for _, i := range order {
		k := slices.Index(busy, slices.Min(busy))
		busy[k] += cost[i]
	}
	return slices.Max(busy)
}
