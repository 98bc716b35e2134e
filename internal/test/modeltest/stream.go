package modeltest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// StreamingTransducer returns the files of a streaming transducer of icefall with
// random weights, which writes words without meaning where there is speech. Its
// encoder reads chunks of 32 frames; each of its frames depends on those before.
func StreamingTransducer() map[string][]byte {
	const dim, symbols, rows = 16, 20, 8
	r := rand.New(rand.NewPCG(4, 4))
	random := func(scale float64, shape ...int64) onnxfile.Tensor {
		n, _ := onnxfile.Elements(shape)
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64() * scale)
		}
		return onnxfile.Floats(shape, v...)
	}
	ints := func(v ...int64) onnxfile.Tensor { return onnxfile.Ints([]int64{int64(len(v))}, v...) }

	e := onnxfile.NewGraph().Input("x", f32, "N", 45, 80).Input("cached_conv1_0", f32, "N", 1, dim).Input("processed_lens", i64, "N")
	x := e.Op("Slice", []string{"x", e.Const(ints(13)), e.Const(ints(45)), e.Const(ints(1))})
	x = e.Op("Reshape", []string{x, e.Const(ints(-1, rows, 320))})
	x = e.Op("Mul", []string{e.Op("Add", []string{x, e.Const(onnxfile.Floats(nil, 6))}), e.Const(onnxfile.Floats(nil, 0.25))})
	x = e.Op("Tanh", []string{e.Op("MatMul", []string{x, e.Const(random(0.06, 320, dim))})})
	sums := e.Op("Add", []string{e.Op("CumSum", []string{x, e.Const(onnxfile.Ints(nil, 1))}), "cached_conv1_0"})
	e.Node("Add", []string{x, e.Op("Sin", []string{sums})}, []string{"encoder_out"})
	e.Node("Slice", []string{sums, e.Const(ints(rows - 1)), e.Const(ints(rows)), e.Const(ints(1))}, []string{"new_cached_conv1_0"})
	e.Node("Add", []string{"processed_lens", e.Const(ints(16))}, []string{"new_processed_lens"})
	e.Output("encoder_out", f32, "N", rows, dim).Output("new_cached_conv1_0", f32, "N", 1, dim).Output("new_processed_lens", i64, "N").
		Meta("model_type", "zipformer2").Meta("T", "45").Meta("decode_chunk_len", "32")

	d := onnxfile.NewGraph().Input("y", i64, "N", 2).Output("decoder_out", f32, "N", dim).Meta("context_size", "2")
	read := d.Op("Gather", []string{d.Const(random(0.7, symbols+1, dim)), d.Op("Add", []string{"y", d.Const(ints(1))})}, onnxfile.AttrInt("axis", 0))
	d.Node("ReduceSum", []string{read, d.Const(ints(1))}, []string{"decoder_out"}, onnxfile.AttrInt("keepdims", 0))

	j := onnxfile.NewGraph().Input("encoder_out", f32, "N", dim).Input("decoder_out", f32, "N", dim).Output("logit", f32, "N", symbols)
	bias := make([]float32, symbols)
	bias[0] = 6
	sum := j.Op("Tanh", []string{j.Op("Add", []string{"encoder_out", "decoder_out"})})
	j.Node("Add", []string{j.Op("MatMul", []string{sum, j.Const(random(2, dim, symbols))}), j.Const(onnxfile.Floats([]int64{symbols}, bias...))}, []string{"logit"})

	var tokens strings.Builder
	for i, s := range []string{"<blk>", "<sos/eos>", "<unk>"} {
		fmt.Fprintln(&tokens, s, i)
	}
	for i := 3; i < symbols; i++ {
		mark := ""
		if i%6 > 0 {
			mark = "▁"
		}
		fmt.Fprintf(&tokens, "%s%c%c %d\n", mark, "bdfgklmnprstvwz"[i%15], "aeiou"[i%5], i)
	}
	return map[string][]byte{"encoder.onnx": e.Bytes(), "decoder.onnx": d.Bytes(), "joiner.onnx": j.Bytes(), "tokens.txt": []byte(tokens.String())}
}
