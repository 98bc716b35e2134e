// Command quantize writes a Whisper model in ggml's format with quantized
// weights, as whisper.cpp's program of that name does:
//
//	go run -C tools ./quantize [-type q8_0|q5_1|q5_0|f16] [MODEL] OUTPUT
//
// The default of MODEL is the demonstration recognizer. Matrices (of 16-bit or
// 32-bit numbers, or q6_K) are quantized; convolutions, biases and the tables
// of positions are not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/otograph/otograph/internal/files/ggmlfile"
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
	if _, _, ok := typ.Numbers(); !ok {
		return fmt.Errorf("-type: expected q8_0, q5_1, q5_0 or f16, found %q", typ)
	}
	data, err := read(args[:len(args)-1])
	if err != nil {
		return err
	}
	out, err := requantize(data, typ)
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
