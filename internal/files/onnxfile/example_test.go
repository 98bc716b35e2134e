package onnxfile_test

import (
	"fmt"
	"log"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// madeUp returns a classifier: it multiplies features [N,3] by a matrix and
// applies Softmax; a second output counts the rows. Nodes can be nested with
// Op.
func madeUp() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 3)
	g.Constant("w", onnxfile.Floats([]int64{3, 2},
		1, 0,
		0, 1,
		0, 0))
	g.Node("Softmax", []string{g.Op("MatMul", []string{"x", "w"})}, []string{"y"}, onnxfile.AttrInt("axis", -1))
	shape := g.Op("Shape", []string{"x"})
	g.Node("Gather", []string{shape, g.Const(onnxfile.Ints([]int64{1}, 0))}, []string{"rows"}, onnxfile.AttrInt("axis", 0))
	g.Output("y", onnxfile.Float32, "N", 2)
	g.Output("rows", onnxfile.Int64, 1)
	g.Meta("model_type", "made_up")
	return g
}

// The bytes are an ordinary model: ort.Open opens them, ort.Inspect reads them.
func Example() {
	graph, err := ort.Inspect(ort.Source{Data: madeUp().Bytes(), Name: "made-up.onnx", Role: "test"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(graph.Metadata["model_type"])
	fmt.Println(graph.IOList())
	// Output:
	// made_up
	// inputs x float32[?,3]; outputs y float32[?,2], rows int64[1]
}
