package onnx

import (
	"math"
	"slices"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// kvCache runs Moonshine's decoder for several texts (rows) at once. The keys
// and values of a step are the inputs of the next, in the same memory.
type kvCache struct {
	n      *moonshine
	sounds []encodedWindow
	rows   []int // the sound of each row
	length int   // tokens read
	frames int   // of the longest sound

	states, mask, bias *ort.Tensor
	sound              map[string]*ort.Tensor // keys and values of the sound, by input; empty before the first step
	own, next          [][]float32            // memory of the keys and values of the texts: the last step's and the next one's
	logits             []float32
	exposed            [][]float32 // attention scores of the last step, by layer: rows x heads x frames
}

// newCache returns a cache for texts of the sounds, with at most width rows for
// each. watch requests the attention.
func (n *moonshine) newCache(sounds []encodedWindow, width int, watch bool) (*kvCache, error) {
	c := &kvCache{n: n, sounds: sounds, sound: map[string]*ort.Tensor{}}
	longest := 0
	for _, s := range sounds {
		c.frames = max(c.frames, s.frames)
		longest = max(longest, s.most)
	}
	rows := len(sounds) * width
	room := func(lists int) (memory [][]float32) {
		for range lists {
			memory = append(memory, make([]float32, rows*int(n.heads*n.dim)*(longest+1)))
		}
		return memory
	}
	c.own, c.next = room(len(n.own)), room(len(n.own))
	c.logits = make([]float32, rows*n.columns)
	if watch {
		for range n.exposed {
			c.exposed = append(c.exposed, make([]float32, rows*int(n.heads)*c.frames))
		}
	}
	first := make([]int, len(sounds))
	for i := range first {
		first[i] = i
	}
	c.listen(first)
	if n.joiner == nil {
		return c, nil
	}
	out := map[string]*ort.Tensor{}
	for _, name := range n.sound {
		out[presentPrefix+name] = c.newSound(name)
	}
	return c, n.joiner.Into(map[string]*ort.Tensor{"encoder_hidden_states": c.states}, out)
}

// newSound returns memory for keys or values of the sound.
func (c *kvCache) newSound(name string) *ort.Tensor {
	c.sound[name] = c.tensor(make([]float32, len(c.rows)*int(c.n.heads*c.n.dim)*c.frames), c.frames)
	return c.sound[name]
}

// listen sets the sounds of the rows.
func (c *kvCache) listen(rows []int) {
	if slices.Equal(rows, c.rows) {
		return
	}
	before := c.rows
	c.rows = slices.Clone(rows)
	n, dim := int64(len(rows)), c.sounds[0].dim
	// The published graph reads every moonshineStride-th entry of the mask.
	columns := (c.frames-1)*moonshineStride + 1
	mask, bias := make([]int64, len(rows)*columns), make([]float32, len(rows)*c.frames)
	states := make([]float32, len(rows)*c.frames*dim)
	for i, r := range rows {
		s := c.sounds[r]
		copy(states[i*c.frames*dim:], s.states)
		for k := range (s.frames-1)*moonshineStride + 1 {
			mask[i*columns+k] = 1
		}
		for k := s.frames; k < c.frames; k++ {
			bias[i*c.frames+k] = math.MinInt32
		}
	}
	c.states = ort.NewFloat32([]int64{n, int64(c.frames), int64(dim)}, states)
	c.mask = ort.NewInt64([]int64{n, int64(columns)}, mask)
	c.bias = ort.NewFloat32([]int64{n, 1, 1, int64(c.frames)}, bias)
	for name, t := range c.sound {
		size := t.Len() / len(before)
		data := make([]float32, 0, len(rows)*size)
		for _, r := range rows {
			data = append(data, t.Float32()[slices.Index(before, r)*size:][:size]...)
		}
		c.sound[name] = c.tensor(data, c.frames)
	}
}

// tensor returns keys or values of n places over data.
func (c *kvCache) tensor(data []float32, n int) *ort.Tensor {
	shape := []int64{int64(len(c.rows)), c.n.heads, int64(n), c.n.dim}
	return ort.NewFloat32(shape, data[:len(c.rows)*int(c.n.heads*c.n.dim)*n])
}

// keep makes row i continue the text of the former row from[i]; each former
// sound must keep its place in the order.
func (c *kvCache) keep(from []int) {
	rows := make([]int, len(from))
	same := len(from) == len(c.rows)
	for i, f := range from {
		rows[i] = c.rows[f]
		same = same && i == f
	}
	if same {
		return
	}
	size := int(c.n.heads*c.n.dim) * c.length
	for k, data := range c.own {
		for i, f := range from {
			copy(c.next[k][i*size:(i+1)*size], data[f*size:(f+1)*size])
		}
	}
	c.own, c.next = c.next, c.own
	c.listen(rows)
}

// step reads the next token of each row and returns the scores of the tokens
// that may follow, row by row, which the next step overwrites.
func (c *kvCache) step(tokens []int64) ([]float32, error) {
	n, rows := c.n, int64(len(c.rows))
	first := c.length == 0
	in := map[string]*ort.Tensor{"input_ids": ort.NewInt64([]int64{rows, 1}, tokens)}
	if n.joiner != nil {
		in["bias"] = c.bias
	} else {
		in["encoder_hidden_states"], in["use_cache_branch"] = c.states, ort.NewBool([]int64{1}, []bool{!first})
		if n.batch {
			in["encoder_attention_mask"] = c.mask
		}
	}
	logits := ort.NewFloat32([]int64{rows, 1, int64(n.columns)}, c.logits[:int(rows)*n.columns])
	out := map[string]*ort.Tensor{"logits": logits}
	for k, name := range n.own {
		in[pastPrefix+name] = c.tensor(c.own[k], c.length)
		out[presentPrefix+name] = c.tensor(c.next[k], c.length+1)
	}
	for _, name := range n.sound {
		if first && n.joiner == nil {
			in[pastPrefix+name] = c.tensor(nil, 0)
			out[presentPrefix+name] = c.newSound(name)
			continue
		}
		in[pastPrefix+name] = c.sound[name]
	}
	for layer, data := range c.exposed {
		shape := []int64{rows, n.heads, 1, int64(c.frames)}
		out[onnxfile.Exposed(layer)] = ort.NewFloat32(shape, data[:rows*n.heads*int64(c.frames)])
	}
	if err := n.decoder.Into(in, out); err != nil {
		return nil, err
	}
	c.own, c.next = c.next, c.own
	c.length++
	return logits.Float32(), nil
}

// attention returns a copy of a row's attention scores of the last step, head
// by head; nil unless requested.
func (c *kvCache) attention(row int) [][]float32 {
	if c.exposed == nil {
		return nil
	}
	var out [][]float32
	for _, h := range c.n.alignment() {
		at := (row*int(c.n.heads) + h.Head) * c.frames
		out = append(out, slices.Clone(c.exposed[h.Layer][at:][:c.sounds[c.rows[row]].frames]))
	}
	return out
}
