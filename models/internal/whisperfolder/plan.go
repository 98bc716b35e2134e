package whisperfolder

import (
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// slot is a tensor of a Whisper model in ggml's format.
type slot struct {
	name  string
	shape []int64 // the outermost dimension first
}

// dims returns the dimensions in the file's order, the innermost first.
func (s slot) dims() []int32 {
	dims := make([]int32, len(s.shape))
	for i, d := range s.shape {
		dims[len(dims)-1-i] = int32(d)
	}
	return dims
}

// kind returns ggml's number of the type in which the file stores the tensor,
// if its matrices have the type large.
func (s slot) kind(large int) int {
	switch {
	case len(s.shape) == 1, strings.HasSuffix(s.name, ".bias"), strings.HasSuffix(s.name, "positional_embedding"):
		return ggmlfile.TensorF32
	case large != ggmlfile.TensorF16 && ggmlfile.Quantizes(s.name, s.dims()):
		return large
	}
	return ggmlfile.TensorF16
}

// tensors returns the tensors of these dimensions, in the file's order.
func tensors(h ggmlfile.Header) []slot {
	var all []slot
	add := func(name string, shape ...int32) {
		s := slot{name: name}
		for _, d := range shape {
			s.shape = append(s.shape, int64(d))
		}
		all = append(all, s)
	}
	n := h.AudioState
	norm := func(name string) { add(name+".weight", n); add(name+".bias", n) }
	add("encoder.positional_embedding", h.AudioContext, n)
	add("decoder.positional_embedding", h.TextContext, n)
	add("decoder.token_embedding.weight", h.Vocabulary, n)
	add("encoder.conv1.weight", n, h.Mels, 3)
	add("encoder.conv1.bias", n, 1)
	add("encoder.conv2.weight", n, n, 3)
	add("encoder.conv2.bias", n, 1)
	norm("encoder.ln_post")
	norm("decoder.ln")
	block := func(prefix string, attention ...string) {
		for _, at := range attention {
			norm(prefix + at + "_ln")
			for _, part := range []string{".query", ".key", ".value", ".out"} {
				add(prefix+at+part+".weight", n, n)
				if part != ".key" {
					add(prefix+at+part+".bias", n)
				}
			}
		}
		norm(prefix + "mlp_ln")
		add(prefix+"mlp.0.weight", 4*n, n)
		add(prefix+"mlp.0.bias", 4*n)
		add(prefix+"mlp.2.weight", n, 4*n)
		add(prefix+"mlp.2.bias", n)
	}
	for i := range h.AudioLayers {
		block(fmt.Sprintf("encoder.blocks.%d.", i), "attn")
	}
	for i := range h.TextLayers {
		block(fmt.Sprintf("decoder.blocks.%d.", i), "attn", "cross_attn")
	}
	return all
}
