package native

import (
	"embed"
	"strings"
)

// recipeFiles holds the script that fetches libwhisper, ggml and ONNX Runtime.
//
//go:embed recipe
var recipeFiles embed.FS

// pins identify ONNX Runtime within npm's package.
type pins struct {
	Name, Version string
	SHA512        string // of the archive, in Base64 as in npm's metadata
	File          string // the platform's file in the archive
	SHA256        string // of the file
}

// onnxRuntimePins returns the pins for a platform such as "darwin/arm64"; ok is
// false if the package does not support it.
func onnxRuntimePins(platform string) (p pins, ok bool) {
	text, err := recipeFiles.ReadFile("recipe/src/onnxruntime.pins")
	if err != nil {
		return p, false
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
