package whisperfolder

import (
	_ "embed" // the names
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// shapeOf returns a tensor's dimensions, the outermost first.
func shapeOf(t ggmlfile.Tensor) []int64 {
	shape := make([]int64, len(t.Dims))
	for i, d := range t.Dims {
		shape[len(shape)-1-i] = int64(d)
	}
	return shape
}

// kindOf returns ggml's number of the type in which the file stores a tensor,
// if its matrices have the type large.
func kindOf(t ggmlfile.Tensor, large int) int {
	switch {
	case len(t.Dims) == 1, strings.HasSuffix(t.Name, ".bias"), strings.HasSuffix(t.Name, "positional_embedding"):
		return ggmlfile.TensorF32
	case large != ggmlfile.TensorF16 && ggmlfile.Quantizes(t.Name, t.Dims):
		return large
	}
	return ggmlfile.TensorF16
}

// namesText has a line per group of tensors: the ending of OpenAI's name, then
// the name of transformers, and the variable of CTranslate2 with the group's
// part of it, because one variable may hold several groups.
//
//go:embed names.txt
var namesText string

// group is a line of namesText.
type group struct {
	end, hf, ct2 string
	part, parts  int64
}

// groupOf returns the group of a tensor with OpenAI's name, the part of the
// name before the group's ending, and its last word; nil for an unknown tensor.
func groupOf(name string) (g *group, prefix, last string) {
	at := strings.LastIndexByte(name, '.')
	for line := range strings.Lines(namesText) {
		g = new(group)
		if _, err := fmt.Sscan(line, &g.end, &g.hf, &g.ct2, &g.part, &g.parts); err != nil {
			panic(err) // impossible: the lines are embedded
		}
		if prefix, ok := strings.CutSuffix(name[:at], g.end); ok && (prefix == "" || strings.HasSuffix(prefix, ".")) {
			return g, prefix, name[at+1:]
		}
	}
	return nil, "", ""
}
