package whisperfolder

import (
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
