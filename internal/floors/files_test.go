package floors

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rootFiles are the files of the root package by floor, the lowest first. A
// file's declarations may be used in that file and on higher floors, but not in
// other files of the same floor.
var rootFiles = [][]string{
	{"bleed.go", "vocabulary.go"},
	{"checkpoints.go", "engines.go", "progress.go", "speakers.go"},
	{"findings.go"},
	{"assemble.go", "cascade.go", "nospeech.go", "warnings.go"},
	{"doubtful.go"},
	{"stages.go"},
	{"channels.go", "pipeline.go"},
	{"voices.go"},
	{"align.go", "run.go"},
}

// TestRootFiles checks that no file of the root package uses what a higher file
// or a neighbor declares.
func TestRootFiles(t *testing.T) {
	floor := map[string]int{}
	for i, names := range rootFiles {
		for _, name := range names {
			floor[name] = i
		}
	}
	fset, files, uses := check(t, "../..", module)
	for _, f := range files {
		name := filepath.Base(fset.Position(f.Pos()).Filename)
		_, ok := floor[name]
		assert.True(t, ok, "%s stands on no floor", name)
	}
	assert.Len(t, files, len(floor))
	seen := map[string]bool{}
	for ident, object := range uses {
		if object.Pkg() == nil || object.Pkg().Path() != module {
			continue
		}
		user := filepath.Base(fset.Position(ident.Pos()).Filename)
		declared := filepath.Base(fset.Position(object.Pos()).Filename)
		if user == declared || floor[declared] < floor[user] || seen[user+object.Name()] {
			continue
		}
		seen[user+object.Name()] = true
		t.Errorf("%s uses %s of %s, which is not below it", user, object.Name(), declared)
	}
}

// check type-checks the package in dir, without its tests.
func check(t *testing.T, dir, path string) (*token.FileSet, []*ast.File, map[*ast.Ident]types.Object) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	var sources []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath, Export string
			GoFiles            []string
		}
		require.NoError(t, dec.Decode(&p))
		exports[p.ImportPath] = p.Export
		if p.ImportPath == path {
			sources = p.GoFiles
		}
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range sources {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	_, err = config.Check(path, fset, files, &info)
	require.NoError(t, err)
	return fset, files, info.Uses
}
