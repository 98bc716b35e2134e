package ggmlfile

import "fmt"

// Tensors returns the names and dimensions of a header's tensors, in the order
// of whisper.cpp's converter. The widths of encoder and decoder are equal.
func Tensors(h Header) (all []Tensor) {
	add := func(name string, dims ...int32) { all = append(all, Tensor{Name: name, Dims: dims}) }
	n := h.AudioState
	norm := func(name string) { add(name+".weight", n); add(name+".bias", n) }
	add("encoder.positional_embedding", n, h.AudioContext)
	add("decoder.positional_embedding", n, h.TextContext)
	add("decoder.token_embedding.weight", n, h.Vocabulary)
	add("encoder.conv1.weight", 3, h.Mels, n)
	add("encoder.conv1.bias", 1, n)
	add("encoder.conv2.weight", 3, n, n)
	add("encoder.conv2.bias", 1, n)
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
		add(prefix+"mlp.0.weight", n, 4*n)
		add(prefix+"mlp.0.bias", 4*n)
		add(prefix+"mlp.2.weight", 4*n, n)
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
