// Package web contains the page that `otograph serve` offers at / and the view
// of a result that `otograph transcribe --format html` writes as a file.
//
// Both are built from src by build.sh into dist, which is not under version
// control. A binary that was built without npm has no page; / then says
// so, and everything else works.
package web

import (
	"embed"
	"errors"
	"io/fs"
)

// The pattern always matches dist-missing.html, which is under version control,
// and the folder dist if the page has been built.
//
//go:embed dist*
var files embed.FS

// ErrNotBuilt is returned if the binary was built without the page.
var ErrNotBuilt = errors.New("this binary was built without the page: build it with `make build` where npm is installed")

// built reads a file of the built page.
func built(name string) ([]byte, error) {
	data, err := files.ReadFile("dist/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	return data, err
}

// Built reports whether the binary contains the page.
func Built() bool {
	_, err := built("index.html")
	return err == nil
}
