// Command quantize writes a Whisper model in ggml's format with quantized
// weights, as whisper.cpp's program of that name does:
//
//	go run -C tools ./quantize [-type q8_0|q5_1|q5_0|f16] [MODEL] OUTPUT
//
// The default of MODEL is the demonstration recognizer. Matrices (of 16-bit or
// 32-bit numbers, or q6_K) are quantized; convolutions, biases and the tables
// of positions stay as they are.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/otograph/otograph/internal/ggmlfile"
	"github.com/otograph/otograph/internal/onnxfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	typ := flag.String("type", string(ggmlfile.Q8_0), "q8_0, q5_1, q5_0 or f16")
	flag.Parse()
	err := checkout.Enter()
	if err == nil {
		err = run(ggmlfile.Type(*typ), flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quantize:", err)
		os.Exit(1)
	}
}

func run(typ ggmlfile.Type, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("expected [MODEL] OUTPUT")
	}
	tensor, file, ok := typ.Numbers()
	if !ok {
		return fmt.Errorf("-type: expected q8_0, q5_1, q5_0 or f16, found %q", typ)
	}
	data, err := read(args[:len(args)-1])
	if err != nil {
		return err
	}
	if _, err := ggmlfile.Check(bytes.NewReader(data), int64(len(data)), nil); err != nil {
		return err
	}
	out, err := quantized(data, tensor, file)
	if err != nil {
		return err
	}
	return os.WriteFile(args[len(args)-1], out, 0o666)
}

// read returns the model of a file, or the demonstration recognizer.
func read(file []string) ([]byte, error) {
	if len(file) > 0 {
		return os.ReadFile(file[0])
	}
	m, err := demo.Models().Need(models.RoleStandard)
	if err != nil {
		return nil, err
	}
	return m.Main().Bytes()
}

// reader parses a valid file.
type reader struct{ rest []byte }

func (r *reader) bytes(n int) (b []byte) {
	b, r.rest = r.rest[:n], r.rest[n:]
	return b
}

func (r *reader) word() int { return int(int32(binary.LittleEndian.Uint32(r.bytes(4)))) }

// quantized converts the matrices of a valid model to another tensor type.
func quantized(data []byte, tensor, file int) ([]byte, error) {
	const header = 12 * 4 // magic and hyperparameters, the last of which is the type
	out := slices.Clone(data[:header])
	binary.LittleEndian.PutUint32(out[header-4:], uint32(file))
	r := &reader{data[header:]}
	r.bytes(4 * r.word() * r.word()) // mel filters
	for range r.word() {
		r.bytes(r.word())
	}
	out = append(out, data[header:len(data)-len(r.rest)]...)
	for len(r.rest) > 0 {
		begin := r.rest
		dims, length, kind := r.word(), r.word(), r.word()
		sizes, count := make([]int32, dims), 1
		for i := range sizes {
			sizes[i] = int32(r.word())
			count *= int(sizes[i])
		}
		name := string(r.bytes(length))
		decode, ok := decoders[kind]
		if !ok {
			return nil, fmt.Errorf("tensor %s: expected 32-bit or 16-bit numbers or q6_K, found type %d", name, kind)
		}
		packed := r.bytes(count / decode.block * decode.size)
		if !ggmlfile.Quantizes(name, sizes) {
			out = append(out, begin[:len(begin)-len(r.rest)]...)
			continue
		}
		head := slices.Clone(begin[:12+4*dims+length])
		binary.LittleEndian.PutUint32(head[8:], uint32(tensor))
		out = append(out, head...)
		var values []float32
		for block := range slices.Chunk(packed, decode.size) {
			values = decode.values(values, block)
		}
		out = appendRows(out, values, int(sizes[0]), tensor)
	}
	return out, nil
}

func appendRows(out []byte, values []float32, width, tensor int) []byte {
	for row := range slices.Chunk(values, width) {
		out = ggmlfile.AppendValues(out, row, tensor)
	}
	return out
}

// decoder decodes a tensor type: the numbers and bytes per block.
type decoder struct {
	block, size int
	values      func(list []float32, block []byte) []float32 // appends a block's numbers
}

// decoders by ggml's number of the type.
var decoders = map[int]decoder{
	0: {1, 4, func(list []float32, b []byte) []float32 {
		return append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}},
	1: {1, 2, func(list []float32, b []byte) []float32 {
		return append(list, onnxfile.Half(binary.LittleEndian.Uint16(b)))
	}},
	14: {256, 210, fromQ6K},
}

// fromQ6K appends the 256 numbers of a q6_K block: the lower four bits, the
// upper two, a scale for each 16 numbers, and the block's scale. Each half of
// the block holds four rows of 32 whose bits are interleaved.
func fromQ6K(list []float32, b []byte) []float32 {
	low, high, scales := b[:128], b[128:192], b[192:208]
	d := onnxfile.Half(binary.LittleEndian.Uint16(b[208:]))
	for half := range 2 {
		for row := range 4 {
			for i := range 32 {
				four := low[64*half+32*(row%2)+i] >> (row / 2 * 4) & 15
				two := high[32*half+i] >> (2 * row) & 3
				scale := int8(scales[8*half+2*row+i/16])
				list = append(list, d*float32(scale)*float32(int(four|two<<4)-32))
			}
		}
	}
	return list
}
