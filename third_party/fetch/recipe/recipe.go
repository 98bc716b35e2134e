// Package recipe carries the script that fetches libwhisper, ggml and ONNX Runtime,
// so that a program can bring it along.
package recipe

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed fetch.sh src
var files embed.FS

// Script is the name of the script in the folder that [Unpack] fills.
const Script = "fetch.sh"

// Unpack writes the script and what it needs into a folder.
func Unpack(dir string) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("native recipe: %w", err)
		}
		return os.WriteFile(to, data, 0o644)
	})
}
