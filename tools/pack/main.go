// Command pack compresses the demonstration models for embedding and prints the
// table for models.go. Run it by hand when the models change:
//
//	go run -C tools ./pack FOLDER
//
// FOLDER holds the unpacked models. The files are written to models/demo as
// NAME.zst, or uncompressed as NAME if that opens faster. The zstd command
// compresses them, because its highest level compresses better than the Go
// library's.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/tools/internal/checkout"
)

// files lists the models with the number of byte planes that compresses each
// one best: 4 for float16 or float32 weights, 1 for 8-bit blocks, which do not
// benefit from planes, and 0 for an uncompressed model. Decompressing demo-ctc
// took 10 ms of every start to save a tenth of its size.
var files = []struct {
	name   string
	planes int
}{
	{"demo-whisper.bin", 1},
	{"demo-ctc.onnx", 0},
	{"demo-ctc-lm.arpa", 1},
	{"demo-vad.onnx", 4},
	{"demo-speaker.onnx", 4},
	{"demo-segmenter.onnx", 4},
	{"demo-tagger.onnx", 4},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack FOLDER")
		os.Exit(2)
	}
	if err := checkout.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
	for _, f := range files {
		if err := pack(os.Args[1], f.name, f.planes); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func pack(dir, name string, planes int) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	target := filepath.Join("models", "demo", name)
	if planes == 0 {
		err = os.WriteFile(target, data, 0o644)
	} else {
		target += ".zst"
		err = compress(demo.Split(data, planes), target)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	packed, err := os.Stat(target)
	if err != nil {
		return err
	}
	fmt.Printf("%s\tplanes %d\tsize %d\tpacked %d\tsha256 %x\n", name, planes, len(data), packed.Size(), sha256.Sum256(data))
	return nil
}

func compress(data []byte, target string) error {
	cmd := exec.Command("zstd", "--quiet", "--force", "--ultra", "-22", "-o", target)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	return nil
}
