// Command pack compresses models for embedding and prints the table for
// models.json. Run it by hand when the models change:
//
//	go run -C tools ./pack demo|published FOLDER
//
// FOLDER holds the unpacked models. The files are written to models/demo or
// models/published as NAME.zst. The zstd command compresses them, because its
// highest level compresses better than the Go library's.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/otograph/otograph/tools/internal/checkout"
)

type file struct {
	name   string
	planes int
}

// sets lists the models with the number of byte planes that compresses each one
// best: 4 for float16 or float32 weights, and 1 for 8-bit blocks, which do not
// benefit from planes.
var sets = map[string][]file{
	"demo": {
		{"demo-whisper.bin", 1},
		{"demo-ctc.onnx", 1},
		{"demo-ctc-lm.arpa", 1},
	},
	"published": {
		{"silero-v6.2.1.onnx", 4},
		{"campplus-zh-en.onnx", 4},
		{"pyannote-segmentation-3.0.onnx", 4},
		{"yamnet.onnx", 1},
	},
}

func main() {
	if len(os.Args) != 3 || sets[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: pack demo|published FOLDER")
		os.Exit(2)
	}
	if err := checkout.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
	for _, f := range sets[os.Args[1]] {
		if err := pack(os.Args[2], os.Args[1], f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// pack writes a file of a folder to the package of a set.
func pack(dir, set string, f file) error {
	data, err := os.ReadFile(filepath.Join(dir, f.name))
	if err != nil {
		return err
	}
	target := filepath.Join("models", set, f.name+".zst")
	if err := compress(split(data, f.planes), target); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	fmt.Printf("%s\tplanes %d\tsize %d\tpacked %d\tsha256 %x\n", f.name, f.planes, len(data), info.Size(), sha256.Sum256(data))
	return nil
}

// split reorders data into byte planes: first every stride-th byte from 0, then
// every stride-th byte from 1, and so on. A stride below 2 returns data unchanged.
func split(data []byte, stride int) []byte {
	if stride < 2 {
		return data
	}
	out := make([]byte, 0, len(data))
	for plane := range stride {
		for i := plane; i < len(data); i += stride {
			out = append(out, data[i])
		}
	}
	return out
}

func compress(data []byte, target string) error {
	cmd := exec.Command("zstd", "--quiet", "--force", "--ultra", "-22", "-o", target)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	return nil
}
