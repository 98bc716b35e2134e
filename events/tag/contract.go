package tag

import (
	"fmt"
	"slices"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// fullClasses is the length of AudioSet's complete list.
const fullClasses = 527

// layout describes how to feed one file.
type layout struct {
	contract string
	input    string
	rank     int // of the input
	output   string
	classes  int
	single   bool // only batches of one
	fixed    int  // samples or frames that the input must have; 0 if any number
}

// scoreNames are the outputs' names by preference, for ambiguous shapes.
var scoreNames = []string{"scores", "prob", "probs", "logits", "output_0", "output", "predictions"}

// demand holds a contract's requirements of a graph's input and outputs.
type demand struct {
	want    string    // in words
	shapes  [][]int64 // that the float32 input may have; -1 where any size will do
	length  int       // the dimension, counted from the last, that a file may fix to a number of samples or frames; 0 for none
	single  bool      // batches of one only
	classes int
}

var demands = map[string]demand{
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
}

// takes reports whether the input of a graph meets the contract.
func (d *demand) takes(in ort.Info) bool {
	return in.Type == ort.Float32 && (in.Rank() < 0 || slices.ContainsFunc(d.shapes, func(shape []int64) bool {
		return slices.EqualFunc(in.Shape, shape, func(dim, n int64) bool { return n < 0 || fits(dim, n) })
	}))
}

// layoutOf returns how to feed a graph of the given contract.
func layoutOf(g *ort.Graph, contract string) (layout, error) {
	d := demands[contract]
	refuse := func(want string) (layout, error) {
		return layout{}, fmt.Errorf("%w: contract %s: expected %s; found %s", ort.ErrContract, contract, want, g.IOList())
	}
	if len(g.Inputs) != 1 || !d.takes(g.Inputs[0]) {
		return refuse(d.want)
	}
	in := g.Inputs[0]
	out, ok := scores(g, d.classes)
	if !ok {
		return refuse(fmt.Sprintf("a float32 output whose last dimension is %d", d.classes))
	}
	l := layout{
		contract: contract, input: in.Name, rank: max(in.Rank(), len(d.shapes[0])), output: out.Name, classes: d.classes,
		single: d.single || in.Rank() > 1 && in.Shape[0] == 1 ||
			contract != models.ContractYAMNet && out.Rank() > 1 && out.Shape[0] == 1,
	}
	if d.length > 0 && in.Rank() > 0 {
		l.fixed = int(max(in.Shape[in.Rank()-d.length], 0))
	}
	return l, nil
}

// scores finds the output with the scores of the classes.
func scores(g *ort.Graph, classes int) (ort.Info, bool) {
	matches := func(o ort.Info, rank int) bool {
		return o.Type == ort.Float32 && o.Rank() == rank && o.Shape[rank-1] == int64(classes)
	}
	for _, rank := range []int{2, 1} {
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
