package onnxtest_test

import (
	"fmt"
	"log"

	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/internal/ort/onnxtest"
)

// madeUp is a classifier: features [N,3] are multiplied with a matrix and go through
// Softmax; a second output counts the rows. Nodes can be nested with Op.
func madeUp() *onnxtest.Graph {
	g := onnxtest.New()
	g.Input("x", onnxtest.Float32, "N", 3)
	g.Constant("w", onnxtest.Floats([]int64{3, 2},
		1, 0,
		0, 1,
		0, 0))
	g.Node("Softmax", []string{g.Op("MatMul", []string{"x", "w"})}, []string{"y"}, onnxtest.AttrInt("axis", -1))
	shape := g.Op("Shape", []string{"x"})
	g.Node("Gather", []string{shape, g.Const(onnxtest.Ints(nil, 0))}, []string{"rows"}, onnxtest.AttrInt("axis", 0))
	g.Output("y", onnxtest.Float32, "N", 2)
	g.Output("rows", onnxtest.Int64)
	g.Meta("model_type", "made_up")
	return g
}

// The bytes are a model like any other: ort.Open takes them, ort.Inspect reads them.
func Example() {
	graph, err := ort.Inspect(ort.Source{Data: madeUp().Bytes(), Name: "made-up.onnx", Role: "test"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(graph.Metadata["model_type"])
	fmt.Println(graph.IOList())
	// Output:
	// made_up
	// inputs x float32[?,3]; outputs y float32[?,2], rows int64[]
}
