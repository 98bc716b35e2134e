// Command pack compresses the demonstration models for embedding and prints the
// table for models.go. Run it by hand when the models change:
//
//	go run ./models/demo/pack FOLDER
//
// FOLDER holds the unpacked models. The files are written to the working
// directory as NAME.zst; the zstd command does the compression, as its highest
// level packs better than the Go library's.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/models/demo"
)

// files lists the models and the number of byte planes that packs each one
// best: 4 for float16 or float32 weights, 1 for 8-bit blocks, which planes do
// not help.
var files = []struct {
	name   string
	planes int
}{
	{"demo-whisper.bin", 1},
	{"demo-ctc.onnx", 1},
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
	cmd := exec.Command("zstd", "--quiet", "--force", "--ultra", "-22", "-o", name+".zst")
	cmd.Stdin = strings.NewReader(string(demo.Split(data, planes)))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: zstd: %w", name, err)
	}
	packed, err := os.Stat(name + ".zst")
	if err != nil {
		return err
	}
	fmt.Printf("%s\tplanes %d\tsize %d\tpacked %d\tsha256 %x\n", name, planes, len(data), packed.Size(), sha256.Sum256(data))
	return nil
}
