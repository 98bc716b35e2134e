package onnx

import (
	"math"
	"slices"

	"github.com/otograph/otograph/internal/engine/ort"
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
	sound              map[string][]float32 // keys and values of the sound, by input; empty before the first step
	own, next          [][]float32          // memory of the keys and values of the texts: the last step's and the next one's
	logits             []float32
	exposed            [][]float32 // attention scores of the last step, by layer: rows x heads x frames
}

// newCache returns a cache for texts of the sounds, with at most width rows for
// each. watch requests the attention.
func (n *moonshine) newCache(sounds []encodedWindow, width int, watch bool) (*kvCache, error) {
	c := &kvCache{n: n, sounds: sounds, sound: map[string][]float32{}}
	for _, s := range sounds {
		c.frames = max(c.frames, s.frames)
	}
	rows := len(sounds) * width
	c.own, c.next = make([][]float32, len(n.own)), make([][]float32, len(n.own))
	c.logits = make([]float32, rows*n.columns)
	if watch {
		for range n.attention {
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
	for _, k := range n.sound {
		out[k.out] = c.newSound(k)
	}
	return c, n.joiner.Into(map[string]*ort.Tensor{n.joiner.Graph().Inputs[0].Name: c.states}, out)
}

// size is the number of keys (or values) of a place in a text or a sound.
func (n *moonshine) size() int { return int(n.layers * n.heads * n.dim) }

// newSound returns memory for keys or values of the sound.
func (c *kvCache) newSound(k keys) *ort.Tensor {
	c.sound[k.in] = make([]float32, len(c.rows)*c.n.size()*c.frames)
	return c.tensor(c.sound[k.in], 0, len(c.rows), c.frames)
}

// listen sets the sounds of the rows.
func (c *kvCache) listen(rows []int) {
	if slices.Equal(rows, c.rows) {
		return
	}
	before := c.rows
	c.rows = slices.Clone(rows)
	n := len(rows)
	if c.n.joiner != nil {
		bias := make([]float32, n*c.frames)
		for i, r := range rows {
			for k := c.sounds[r].frames; k < c.frames; k++ {
				bias[i*c.frames+k] = math.MinInt32
			}
		}
		c.bias = ort.NewFloat32([]int64{int64(n), 1, 1, int64(c.frames)}, bias)
	}
	if c.n.joiner == nil || before == nil {
		c.show(rows)
	}
	for name, data := range c.sound {
		size, from := len(data)/len(before), make([]int, n)
		inPlace := true
		for i, r := range rows {
			from[i] = slices.Index(before, r)
			inPlace = inPlace && from[i] >= i
		}
		to := data
		if !inPlace {
			to = make([]float32, n*size)
		}
		for i, f := range from {
			copy(to[i*size:(i+1)*size], data[f*size:(f+1)*size])
		}
		c.sound[name] = to[:n*size]
	}
}

// show sets the encoder's output for the rows, and a published graph's mask.
func (c *kvCache) show(rows []int) {
	n, dim := len(rows), c.sounds[0].dim
	states := make([]float32, n*c.frames*dim)
	for i, r := range rows {
		copy(states[i*c.frames*dim:], c.sounds[r].states)
	}
	c.states = ort.NewFloat32([]int64{int64(n), int64(c.frames), int64(dim)}, states)
	if c.n.joiner != nil || !c.n.batch {
		return
	}
	columns := (c.frames-1)*moonshineStride + 1 // the graph reads every moonshineStride-th
	mask := make([]int64, n*columns)
	for i, r := range rows {
		for k := range (c.sounds[r].frames-1)*moonshineStride + 1 {
			mask[i*columns+k] = 1
		}
	}
	c.mask = ort.NewInt64([]int64{int64(n), int64(columns)}, mask)
}

// tensor returns keys or values of n places of rows from the row first on.
func (c *kvCache) tensor(data []float32, first, rows, n int) *ort.Tensor {
	shape := []int64{int64(rows), c.n.heads, int64(n), c.n.dim}
	if c.n.stream != nil {
		shape = append([]int64{c.n.layers}, shape...)
	}
	return ort.NewFloat32(shape, data[first*c.n.size()*n:][:rows*c.n.size()*n])
}

// reserve makes room for the next keys and values: rows texts of length tokens.
func (c *kvCache) reserve(rows, length int) {
	need := rows * c.n.size() * length
	for k := range c.next {
		if len(c.next[k]) < need {
			c.next[k] = make([]float32, 2*need)
		}
	}
}

// keep makes row i continue the former row from[i]; the sounds keep their order.
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
	size := c.n.size() * c.length
	c.reserve(len(from), c.length)
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
	each := len(tokens)
	if c.n.stream != nil {
		each = 1
	}
	c.reserve(len(tokens), c.length+1)
	for first := 0; first < len(tokens); first += each {
		if err := c.read(tokens[first:first+each], first); err != nil {
			return nil, err
		}
	}
	c.own, c.next = c.next, c.own
	c.length++
	return c.logits[:len(tokens)*c.n.columns], nil
}

// read runs the decoder for the rows from first on.
func (c *kvCache) read(tokens []int64, first int) error {
	n, rows := c.n, len(tokens)
	ids, in := "input_ids", map[string]*ort.Tensor{}
	switch {
	case n.stream != nil:
		ids = "token"
	case n.joiner != nil:
		in["bias"] = c.bias
	default:
		in["encoder_hidden_states"], in["use_cache_branch"] = c.states, ort.NewBool([]int64{1}, []bool{c.length > 0})
		if n.batch {
			in["encoder_attention_mask"] = c.mask
		}
	}
	in[ids] = ort.NewInt64([]int64{int64(rows), 1}, tokens)
	out := map[string]*ort.Tensor{"logits": ort.NewFloat32([]int64{int64(rows), 1, int64(n.columns)}, c.logits[first*n.columns:][:rows*n.columns])}
	for i, k := range n.own {
		in[k.in] = c.tensor(c.own[i], first, rows, c.length)
		out[k.out] = c.tensor(c.next[i], first, rows, c.length+1)
	}
	for _, k := range n.sound {
		if c.length == 0 && n.joiner == nil {
			in[k.in], out[k.out] = c.tensor(nil, 0, rows, 0), c.newSound(k)
			continue
		}
		in[k.in] = c.tensor(c.sound[k.in], first, rows, c.frames)
	}
	for layer, data := range c.exposed {
		width := int(n.heads) * c.frames
		out[n.attention[layer]] = ort.NewFloat32([]int64{int64(rows), n.heads, 1, int64(c.frames)}, data[first*width:][:rows*width])
	}
	return n.decoder.Into(in, out)
}

// attention returns a copy of a row's attention scores of the last step, head
// by head; nil unless requested.
func (c *kvCache) attention(row int) [][]float32 {
	if c.exposed == nil {
		return nil
	}
	var out [][]float32
	for _, h := range c.n.alignment() {
		at := (row*int(c.n.heads) + h[1]) * c.frames
		scores := slices.Clone(c.exposed[h[0]][at:][:c.sounds[c.rows[row]].frames])
		if c.n.stream != nil { // the outputs are probabilities
			for i, p := range scores {
				scores[i] = float32(math.Log(max(float64(p), 1e-10)))
			}
		}
		out = append(out, scores)
	}
	return out
}
