package tag

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// fullClasses is the length of AudioSet's complete list.
const fullClasses = 527

// layout describes how to feed one file.
type layout struct {
	contract, input string
	rank            int      // of the input
	length          ort.Info // second input with the frame counts; its name is empty if there is no such input
	output          string
	framewise       bool // the output is [B,F,classes]
	classes         int
	single          bool // only batches of one
	fixed           int  // samples or frames that the input must have; 0 if any number
	rate            int  // Hz from the file's metadata; 0 if it has none
}

// scoreNames are the outputs' names by preference, for ambiguous shapes.
var scoreNames = []string{"clipwise_output", "scores", "prob", "probs", "logits", "output_0", "output", "predictions"}

// demand holds a contract's requirements of a graph's inputs and outputs.
type demand struct {
	want    string    // in words
	shapes  [][]int64 // that the float32 input may have; -1 accepts any size
	length  int       // the dimension, counted from the last, that a file may fix to a number of samples or frames; 0 for none
	lengths bool      // the inputs are x and x_lens, the frame counts
	single  bool      // batches of one only
	classes int
}

var demands = map[string]demand{
	models.ContractPANNs: {
		want:   "one float32 input [B,samples] and an output [B,527]",
		shapes: [][]int64{{-1, -1}}, length: 1, classes: fullClasses,
	},
	models.ContractYAMNet: {
		want:   "one float32 input [samples] at 16 kHz and an output [patches,521]",
		shapes: [][]int64{{-1}, {-1, -1}}, length: 1, single: true, classes: spec.NumEventClasses,
	},
	models.ContractYAMNetPatches: {
		want:   "one float32 input [n,96,64] and an output [n,521]",
		shapes: [][]int64{{-1, 96, 64}}, classes: spec.NumEventClasses,
	},
	models.ContractCED: {
		want:   "one float32 input [B,64,T] and an output [B,527]",
		shapes: [][]int64{{-1, 64, -1}}, length: 1, classes: fullClasses,
	},
	models.ContractZipformerTagger: {
		want:   "inputs x float32[B,T,80] and x_lens int64[B] and an output [B,527]",
		shapes: [][]int64{{-1, -1, 80}}, length: 2, lengths: true, classes: fullClasses,
	},
}

// takes reports whether the float32 input of a graph meets the contract.
func (d *demand) takes(g *ort.Graph, in ort.Info) bool {
	if d.lengths {
		lens, ok := g.Input("x_lens")
		if !ok || in.Name != "x" || len(g.Inputs) != 2 || lens.Type != ort.Int64 && lens.Type != ort.Int32 {
			return false
		}
	} else if len(g.Inputs) != 1 || in.Name == "" {
		return false
	}
	return in.Rank() < 0 || slices.ContainsFunc(d.shapes, func(shape []int64) bool {
		return slices.EqualFunc(in.Shape, shape, func(dim, n int64) bool { return n < 0 || dim < 0 || dim == n })
	})
}

// layoutOf returns how to feed a graph of the given contract.
func layoutOf(g *ort.Graph, contract string) (layout, error) {
	d := demands[contract]
	refuse := func(want string) (layout, error) {
		return layout{}, fmt.Errorf("%w: contract %s: expected %s; found %s", ort.ErrContract, contract, want, g.IOList())
	}
	var in ort.Info
	if i := slices.IndexFunc(g.Inputs, func(i ort.Info) bool { return i.Type == ort.Float32 }); i >= 0 {
		in = g.Inputs[i]
	}
	if !d.takes(g, in) {
		return refuse(d.want)
	}
	out, ok := scores(g, d.classes)
	if !ok {
		return refuse(fmt.Sprintf("a float32 output whose last dimension is %d", d.classes))
	}
	l := layout{
		contract: contract, input: in.Name, rank: max(in.Rank(), len(d.shapes[0])), output: out.Name, classes: d.classes,
		framewise: contract == models.ContractPANNs && (out.Rank() == 3 || strings.HasPrefix(out.Name, "framewise")),
		single: d.single || in.Rank() > 1 && in.Shape[0] == 1 ||
			contract != models.ContractYAMNet && out.Rank() > 1 && out.Shape[0] == 1,
	}
	if rate, err := strconv.Atoi(g.Metadata["sample_rate"]); err == nil && rate > 0 {
		l.rate = rate
	}
	if d.length > 0 && in.Rank() > 0 {
		l.fixed = int(max(in.Shape[in.Rank()-d.length], 0))
	}
	if d.lengths {
		l.length, _ = g.Input("x_lens")
	}
	return l, nil
}

// scores finds the output with the scores of the classes.
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
