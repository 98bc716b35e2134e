package onnx

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// float describes a port of 32-bit floats; dimensions of -1 are free.
func float(name string, shape ...int64) ort.Info {
	return ort.Info{Name: name, Type: ort.Float32, Shape: shape}
}

// checker compares a graph with the contract of its family. It keeps the first
// error; after an error, its methods return usable values.
type checker struct {
	*ort.Graph
	source ort.Source
	err    error
}

// inspected returns the checker of a graph that is not opened yet.
func inspected(source ort.Source) *checker {
	g, err := ort.Inspect(source)
	if err != nil {
		g = &ort.Graph{}
	}
	return &checker{g, source, err}
}

// fail sets the error, which wraps kind.
func (c *checker) fail(kind error, format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w: %w", c.source, kind, fmt.Errorf(format, a...))
	}
}

// ports checks that the graph has exactly the given inputs (any if nil), and at
// least the outputs.
func (c *checker) ports(inputs []ort.Info, outputs ...ort.Info) {
	if c.err == nil {
		c.err = c.Check(ort.Contract{Inputs: inputs, Outputs: outputs, Exact: inputs != nil})
	}
}

// has reports whether a graph has a port (find) of each name.
func has(find func(string) (ort.Info, bool), names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { _, ok := find(n); return !ok })
}

// alias returns the first of the names that the graph has, for exports that
// name a port differently. If the graph has none, it returns the first name,
// which the later check then reports.
func alias(find func(string) (ort.Info, bool), names ...string) string {
	return names[max(slices.IndexFunc(names, func(n string) bool { return has(find, n) }), 0)]
}

// integer checks that an input holds int32 or int64, and returns it.
func (c *checker) integer(name string, rank int) ort.Info {
	in, ok := c.Input(name)
	if !ok || (in.Type != ort.Int32 && in.Type != ort.Int64) || (in.Rank() >= 0 && in.Rank() != rank) {
		shape := onnxfile.FormatShape(slices.Repeat([]int64{-1}, rank))
		c.fail(ErrContract, "expected input %s int32%s or int64%s (it has %s)", name, shape, shape, c.IOList())
	}
	return in
}

// width compares an output's declared last dimension with the token list.
func (c *checker) width(output string, vocab *vocabulary) {
	if out, _ := c.Output(output); out.Last() >= 0 && out.Last() != int64(vocab.size()) && c.err == nil {
		c.err = widthError(c.source, output, int(out.Last()), vocab)
	}
}

func widthError(source ort.Source, output string, found int, vocab *vocabulary) error {
	return fmt.Errorf("%s: %w: %s lists %d tokens, so output %s should have %d columns, it has %d",
		source, ErrTokens, vocab.name, vocab.size(), output, vocab.size(), found)
}

// blank returns the token list's blank, which has one of the given names.
func (c *checker) blank(vocab *vocabulary, names string) int {
	if vocab.blank < 0 {
		c.fail(ErrTokens, "%s has no blank (%s)", vocab.name, names)
	}
	return vocab.blank
}

// oneAtATime reports whether an input's batch dimension is fixed to one window.
func (c *checker) oneAtATime(input string) bool {
	in, _ := c.Input(input)
	return in.Rank() == 3 && in.Shape[0] == 1
}

// number reads a number from the metadata, or returns fallback.
func (c *checker) number(key string, fallback, low, high int) int {
	s := strings.TrimSpace(c.Metadata[key])
	if s == "" {
		return fallback
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		c.fail(ErrContract, "metadata %s: expected a number from %d to %d, found %.40q", key, low, high, s)
		return fallback
	}
	return n
}

// numbers reads a list with commas from the metadata, or returns nil.
func (c *checker) numbers(key string, want int) []float32 {
	s := strings.TrimSpace(c.Metadata[key])
	if s == "" {
		return nil
	}
	v, err := floats(strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '[' || r == ']' }), want)
	if err != nil {
		c.fail(ErrContract, "metadata %s: expected %d numbers: %w", key, want, err)
	}
	return v
}

// floats reads want numbers.
func floats(fields []string, want int) ([]float32, error) {
	if len(fields) != want {
		return nil, fmt.Errorf("found %d numbers", len(fields))
	}
	v := make([]float32, want)
	for i, f := range fields {
		x, err := strconv.ParseFloat(f, 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%.40q is not a number", f)
		}
		v[i] = float32(x)
	}
	return v, nil
}

// pad joins windows of different lengths into one [N,T,dim] tensor.
func pad(windows []matrix, value float32) *ort.Tensor {
	most, dim := 0, windows[0].dim
	for _, w := range windows {
		most = max(most, w.frames)
	}
	shape := []int64{int64(len(windows)), int64(most), int64(dim)}
	if len(windows) == 1 {
		return ort.NewFloat32(shape, windows[0].data)
	}
	data := make([]float32, len(windows)*most*dim)
	for i, w := range windows {
		row := data[i*most*dim : (i+1)*most*dim]
		n := copy(row, w.data)
		for ; n < len(row); n++ {
			row[n] = value
		}
	}
	return ort.NewFloat32(shape, data)
}

func frameCounts(windows []matrix) []int {
	n := make([]int, len(windows))
	for i, w := range windows {
		n[i] = w.frames
	}
	return n
}

// scoreRows checks an output [N,T',V] of scores and returns its values.
func scoreRows(source ort.Source, name string, t *ort.Tensor, n int, vocab *vocabulary) (data []float32, rows int, err error) {
	s, columns := t.Shape(), vocab.size()
	if len(s) != 3 || s[0] != int64(n) || t.Float32() == nil && t.Len() > 0 {
		return nil, 0, fmt.Errorf("%s: %w: output %s: expected float32[%d,?,%d], found %s%v", source, ErrContract, name, n, columns, t.Type(), s)
	}
	if s[2] != int64(columns) {
		return nil, 0, widthError(source, name, int(s[2]), vocab)
	}
	return t.Float32(), int(s[1]), nil
}
