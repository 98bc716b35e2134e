package tag

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// fullClasses is the length of AudioSet's complete list.
const fullClasses = 527

// layout describes how to feed one file.
type layout struct {
	contract  string
	input     string
	rank      int      // of the input
	length    ort.Info // second input with the frame counts; its name is empty if there is no such input
	output    string
	framewise bool // the output is [B,F,classes]
	classes   int
	single    bool // only batches of one
	fixed     int  // samples or frames that the input must have; 0 if any number
	rate      int  // Hz from the file's metadata; 0 if it has none
}

// scoreNames are in order of preference, for outputs whose shapes don't decide.
var scoreNames = []string{"clipwise_output", "scores", "prob", "probs", "logits", "output_0", "output", "predictions"}

// layoutOf returns how to feed a graph of the given contract.
func layoutOf(g *ort.Graph, contract string) (layout, error) {
	l := layout{contract: contract}
	if rate, err := strconv.Atoi(g.Metadata["sample_rate"]); err == nil && rate > 0 {
		l.rate = rate
	}
	demand := func(want string) error {
		return fmt.Errorf("%w: contract %s: expected %s; found %s", ort.ErrContract, contract, want, g.IOList())
	}
	var in ort.Info
	for _, i := range g.Inputs {
		if i.Type == ort.Float32 && in.Name == "" {
			in = i
		}
	}
	l.input, l.rank = in.Name, in.Rank()
	only := len(g.Inputs) == 1 && in.Name != ""
	dim := func(i int) int64 {
		if i < in.Rank() {
			return in.Shape[i]
		}
		return -1
	}
	l.single = in.Rank() > 1 && dim(0) == 1
	l.classes = spec.NumEventClasses
	switch contract {
	case models.ContractPANNs:
		if !only || in.Rank() != 2 && in.Rank() >= 0 {
			return l, demand("one float32 input [B,samples] and an output [B,527]")
		}
		l.rank, l.classes, l.fixed = 2, fullClasses, int(max(dim(1), 0))
	case models.ContractYAMNet:
		if !only || in.Rank() == 0 || in.Rank() > 2 {
			return l, demand("one float32 input [samples] at 16 kHz and an output [patches,521]")
		}
		l.rank = max(in.Rank(), 1)
		l.fixed, l.single = int(max(dim(l.rank-1), 0)), true
	case models.ContractYAMNetPatches:
		if !only || in.Rank() >= 0 && (in.Rank() != 3 || !fits(dim(1), 96) || !fits(dim(2), 64)) {
			return l, demand("one float32 input [n,96,64] and an output [n,521]")
		}
	case models.ContractCED:
		if !only || in.Rank() >= 0 && (in.Rank() != 3 || !fits(dim(1), 64)) {
			return l, demand("one float32 input [B,64,T] and an output [B,527]")
		}
		l.classes, l.fixed = fullClasses, int(max(dim(2), 0))
	case models.ContractZipformerTagger:
		x, ok := g.Input("x")
		lens, ok2 := g.Input("x_lens")
		if !ok || !ok2 || len(g.Inputs) != 2 || x.Type != ort.Float32 || x.Rank() >= 0 && (x.Rank() != 3 || !fits(x.Shape[2], 80)) ||
			lens.Type != ort.Int64 && lens.Type != ort.Int32 {
			return l, demand("inputs x float32[B,T,80] and x_lens int64[B] and an output [B,527]")
		}
		l.length, l.classes, l.fixed = lens, fullClasses, int(max(dim(1), 0))
	}
	out, ok := scores(g, l.classes)
	if !ok {
		return l, demand(fmt.Sprintf("a float32 output whose last dimension is %d", l.classes))
	}
	l.output = out.Name
	l.framewise = contract == models.ContractPANNs && (out.Rank() == 3 || strings.HasPrefix(out.Name, "framewise"))
	if contract != models.ContractYAMNet && out.Rank() > 1 && out.Shape[0] == 1 {
		l.single = true
	}
	return l, nil
}

// scores finds the output with the scores of the classes. It prefers the scores
// of the whole clip over those of its frames.
func scores(g *ort.Graph, classes int) (ort.Info, bool) {
	matches := func(o ort.Info, rank int) bool {
		return o.Type == ort.Float32 && o.Rank() == rank && o.Shape[rank-1] == int64(classes)
	}
	// Frames of 10 ms yield better times than the clip as a whole.
	if o, ok := g.Output("framewise_output"); ok && matches(o, 3) {
		return o, true
	}
	for _, rank := range []int{2, 3, 1} {
		for _, o := range g.Outputs {
			if matches(o, rank) {
				return o, true
			}
		}
	}
	// The file does not state the last dimension, so the name decides.
	for _, o := range g.Outputs {
		free := o.Rank() < 0 || o.Rank() > 0 && o.Shape[o.Rank()-1] < 0
		if free && o.Type == ort.Float32 && (slices.Contains(scoreNames, o.Name) || len(g.Outputs) == 1) {
			return o, true
		}
	}
	return ort.Info{}, false
}

// fits reports whether a dimension is n or free.
func fits(dim, n int64) bool { return dim == n || dim < 0 }
