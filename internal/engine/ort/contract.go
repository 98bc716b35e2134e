package ort

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Contract describes the inputs and outputs that a caller needs. In each [Info]
// the type 0 ([AnyType]), a nil shape and a dimension of -1 match anything.
type Contract struct {
	Inputs, Outputs []Info
	// Exact rejects additional inputs, because they would get no value.
	// Additional outputs are always accepted.
	Exact bool
}

// Check returns nil if the model fulfills the contract. Otherwise the error
// wraps [ErrContract] and names the file, its role, each port that is missing
// or different, and the model's ports.
func (g *Graph) Check(c Contract) error {
	var faults []string
	compare := func(kind string, want, have []Info) {
		for _, w := range want {
			h, ok := onnxfile.Find(have, w.Name)
			switch {
			case !ok:
				faults = append(faults, fmt.Sprintf("expected %s %s, found none of that name", kind, wanted(w)))
			case !matches(w, h):
				faults = append(faults, fmt.Sprintf("expected %s %s, found %s", kind, wanted(w), h))
			}
		}
	}
	compare("input", c.Inputs, g.Inputs)
	compare("output", c.Outputs, g.Outputs)
	for _, h := range g.Inputs {
		if _, known := onnxfile.Find(c.Inputs, h.Name); c.Exact && !known {
			faults = append(faults, fmt.Sprintf("nothing to feed to input %s", h))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %s (it has %s)", g.source, ErrContract, strings.Join(faults, "; "), g.IOList())
}

// matches compares the file's declaration with a requirement. Undeclared
// properties (no shape, a free dimension) fulfill every requirement.
func matches(want, have Info) bool {
	sameType := want.Type == AnyType || want.Type == have.Type
	return sameType && (want.Shape == nil || have.Shape == nil || slices.EqualFunc(want.Shape, have.Shape, func(a, b int64) bool {
		return a < 0 || b < 0 || a == b
	}))
}

func wanted(i Info) string {
	if i.Type == AnyType && i.Shape == nil {
		return i.Name
	}
	return i.String()
}

// Input returns the input with a name.
func (g *Graph) Input(name string) (Info, bool) { return onnxfile.Find(g.Inputs, name) }

// Output returns the output with a name.
func (g *Graph) Output(name string) (Info, bool) { return onnxfile.Find(g.Outputs, name) }

// IOList formats the model's inputs and outputs for an error message.
func (g *Graph) IOList() string { return onnxfile.Signature(g.Inputs, g.Outputs) }
