// Package recipe embeds the script that fetches libwhisper, ggml and ONNX
// Runtime, so that programs can include it.
package recipe

import (
	"embed"
	"os"
	"strings"
)

//go:embed fetch.sh src
var files embed.FS

// Script is the name of the script in the folder that [Unpack] fills.
const Script = "fetch.sh"

// Unpack writes the script and its files into a folder.
func Unpack(dir string) error { return os.CopyFS(dir, files) }

// Pins identify ONNX Runtime within npm's package.
type Pins struct {
	Name, Version string
	SHA512        string // of the archive, in Base64 as in npm's metadata
	File          string // the platform's file in the archive
	SHA256        string // of the file
}

// ONNXRuntime returns the pins for a platform such as "darwin/arm64"; ok is
// false if the package does not support it.
func ONNXRuntime(platform string) (p Pins, ok bool) {
	text, err := files.ReadFile("src/onnxruntime.pins")
	if err != nil {
		return Pins{}, false
	}
	for line := range strings.Lines(string(text)) {
		switch words := strings.Fields(line); {
		case len(words) == 4 && words[0] == "package":
			p.Name, p.Version, p.SHA512 = words[1], words[2], words[3]
		case len(words) == 3 && words[0] == platform:
			p.File, p.SHA256, ok = words[1], words[2], true
		}
	}
	return p, ok && p.Name != ""
}
