package silero

import (
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/vad"
)

// contextSamples is the number of samples of the previous window that v5 and
// later read, and rowWidth the number read per call.
const (
	contextSamples = 64
	rowWidth       = contextSamples + vad.Window
)

// layout describes the inputs and outputs of one published form of the network.
type layout struct {
	name    string
	context int // samples of the previous window that precede each window

	input, rate string // names of inputs; rate is "" if there is no such input
	output      string
	rateRank    int

	stateIn, stateOut []string
	stateLayers       int64
	stateSize         int64

	// sequence is set if the rows of one call are consecutive windows of one
	// recording. Otherwise each row is a separate recording.
	sequence bool
	// maxRows is 1 if the file fixes the batch, and 0 if it doesn't.
	maxRows int64
}

// forms holds the published forms of the network by their contracts.
var forms = map[string]layout{
	models.ContractSileroV5: {
		name: "v5/v6", context: contextSamples, input: "input", output: "output",
		stateIn: []string{"state"}, stateOut: []string{"stateN"}, stateLayers: 2, stateSize: 128,
	},
	models.ContractSileroSequence: {
		name: "v6 sequence", context: contextSamples, input: "input", output: "speech_probs", sequence: true,
		stateIn: []string{"h", "c"}, stateOut: []string{"hn", "cn"}, stateLayers: 1, stateSize: 128,
	},
	models.ContractSileroV4: {
		name: "v4", input: "input", output: "output",
		stateIn: []string{"h", "c"}, stateOut: []string{"hn", "cn"}, stateLayers: 2, stateSize: 64,
	},
	models.ContractSileroV4K2: {
		name: "v4 (k2-fsa export)", input: "x", output: "prob",
		stateIn: []string{"h", "c"}, stateOut: []string{"new_h", "new_c"}, stateLayers: 2, stateSize: 64,
	},
}

// layoutOf returns the layout of a graph with the given contract.
func layoutOf(g *ort.Graph, contract string) (layout, error) {
	l := forms[contract]
	if _, ok := g.Output("next_h"); ok && contract == models.ContractSileroV4K2 {
		l.stateOut = []string{"next_h", "next_c"}
	}
	want := ort.Contract{Exact: true}
	if p, ok := g.Input("sr"); ok {
		l.rate, l.rateRank = "sr", max(p.Rank(), 0)
		want.Inputs = append(want.Inputs, ort.Info{Name: "sr", Type: ort.Int64})
		if l.rateRank > 1 {
			return l, fmt.Errorf("expected sr as a scalar, it has %s", p)
		}
	}
	want.Inputs = append(want.Inputs, ort.Info{Name: l.input, Type: ort.Float32, Shape: []int64{-1, int64(l.context + vad.Window)}})
	for i := range l.stateIn {
		want.Inputs = append(want.Inputs, ort.Info{Name: l.stateIn[i], Type: ort.Float32, Shape: []int64{l.stateLayers, -1, l.stateSize}})
		want.Outputs = append(want.Outputs, ort.Info{Name: l.stateOut[i], Type: ort.Float32})
	}
	want.Outputs = append(want.Outputs, ort.Info{Name: l.output, Type: ort.Float32})
	if err := g.Check(want); err != nil {
		return l, fmt.Errorf("%s: %w", l.name, err)
	}

	// The batch is free only if neither tensor fixes it.
	in, _ := g.Input(l.input)
	st, _ := g.Input(l.stateIn[0])
	for _, p := range []struct {
		info ort.Info
		axis int
	}{{in, 0}, {st, 1}} {
		if l.sequence && p.axis == 1 {
			continue
		}
		if p.axis < len(p.info.Shape) && p.info.Shape[p.axis] > 0 {
			if n := p.info.Shape[p.axis]; n != 1 {
				return l, fmt.Errorf("%s: a fixed batch of %d is not supported, 1 or a free one is", strings.TrimSpace(p.info.String()), n)
			}
			l.maxRows = 1
		}
	}
	return l, nil
}
